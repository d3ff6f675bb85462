//! What `create`, `createIndexes`, `collMod`, `renameCollection` and the drops do to definitions.

mod as_told;
pub(crate) mod coll_mod;
pub(crate) mod collections;
pub(crate) mod conflict;
pub(crate) mod drop_database;
pub(crate) mod dropping;
pub(crate) mod indexes;
pub(crate) mod permit;
pub(crate) mod rename;
pub(crate) mod time_series;
