//! Cursors of clients: what one holds between batches, and how its batches are written into replies.
//!
//! [`body`] is everything that a cursor can be; [`query`] runs the plan of a find, [`pipeline`] an aggregation, [`oplog_tail`]
//! waits at the end of a capped collection. Commands open a cursor through [`reply`] and take it up again in `getMore`.

pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod oplog_tail;
pub(crate) mod parked;
pub(crate) mod pipeline;
pub(crate) mod query;
pub(crate) mod query_ctx;
pub(crate) mod reply;
pub(crate) mod spill;
