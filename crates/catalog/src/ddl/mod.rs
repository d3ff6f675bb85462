//! What `create`, `createIndexes`, `collMod`, `renameCollection` and the drops do to definitions, and what they may say.

pub(crate) mod coll_mod;
pub(crate) mod coll_mod_args;
pub(crate) mod collections;
pub(crate) mod conflict;
pub(crate) mod create_args;
pub(crate) mod drop_database;
pub(crate) mod dropping;
pub(crate) mod encrypted_fields;
pub(crate) mod indexes;
pub(crate) mod rename;
pub(crate) mod storage_engine;
pub(crate) mod time_series;
