//! Commands that list what exists.

pub mod list_collections;
pub mod list_databases;
pub mod list_indexes;
