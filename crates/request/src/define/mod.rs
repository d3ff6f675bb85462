//! Commands that define collections and indexes.

pub mod coll_mod;
pub mod convert_to_capped;
pub mod create;
pub mod create_indexes;
pub mod create_rules;
pub mod drop;
pub mod drop_indexes;
mod encrypted_fields;
pub mod rename_collection;
pub mod set_index_commit_quorum;
