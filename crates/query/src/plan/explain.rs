//! Plans as explain shows them.
