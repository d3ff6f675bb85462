//! Collections, the log and earlier states of both as sources for queries.

pub(crate) mod oplog_source;
pub(crate) mod past;
pub(crate) mod source;
