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
pub(crate) mod reply;

use crate::read::Reads;
use parked::ParkedCursor;
use std::sync::Arc;

/// Those that wait for their next `getMore`.
pub(crate) type OpenCursors = pando_session::Cursors<Box<dyn ParkedCursor>>;

/// What cursors are opened with, and where they wait.
pub(crate) struct ClientCursors {
    pub(crate) reads: Arc<Reads>,
    pub(crate) open: Arc<OpenCursors>,
}
