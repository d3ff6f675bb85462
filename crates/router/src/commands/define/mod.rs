//! Commands that change what there is.

pub(super) mod coll_mod;
pub(super) mod convert_to_capped;
pub(super) mod create;
pub(super) mod create_indexes;
pub(super) mod drop;
pub(super) mod drop_database;
pub(super) mod drop_indexes;
pub(super) mod on_primary;
pub(super) mod rename_collection;
