//! Commands that define collections and indexes.

pub mod create_indexes;
