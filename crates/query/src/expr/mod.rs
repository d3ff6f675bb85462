//! Aggregation expressions over raw documents.
