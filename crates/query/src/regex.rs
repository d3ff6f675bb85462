//! Regular expressions with MongoDB options.
