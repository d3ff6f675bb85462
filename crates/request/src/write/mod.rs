//! Commands that write documents.

pub mod args;
pub mod bulk_write;
pub mod delete;
pub mod find_and_modify;
pub mod insert;
pub mod update;
