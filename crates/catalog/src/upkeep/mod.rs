//! Checks, figures, sizes of the log, and the sweeper of expired documents.

pub(crate) mod db_hash;
pub(crate) mod oplog_size;
pub(crate) mod stats;
pub(crate) mod ttl;
pub(crate) mod validate;
