//! A cursor between two batches, as the registry keeps it and `getMore` takes it up: what is inside, [`body`](super::body) knows.

use crate::cursors::batch::Batch;
use crate::read::Reads;
use pando_base::{OpTime, Result};
use pando_bson::DocBuf;
use pando_command::OpCtx;
use pando_env::BoxFuture;
use pando_query::script::Scripts;
use std::sync::Arc;
use std::time::Duration;

/// When a wait for data ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    /// Monotonic.
    pub(crate) deadline: Duration,
    /// Also when the commit point passes this.
    pub(crate) committed_after: Option<OpTime>,
}

/// Whether anything may follow a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum More {
    Yes,
    No,
}

pub(crate) trait ParkedCursor: Send {
    /// Appends documents until the batch is full or there are no more.
    fn next_batch<'a>(
        &'a mut self,
        reads: &'a Reads,
        ctx: &'a OpCtx,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<More>>;
    /// Waits for documents to come in, then fills the batch.
    fn await_batch<'a>(
        &'a mut self,
        reads: &'a Reads,
        ctx: &'a OpCtx,
        batch: &'a mut Batch<'_>,
        until: Until,
    ) -> BoxFuture<'a, Result<More>>;
    /// What runs its JavaScript.
    fn scripts(&self) -> Option<&Arc<dyn Scripts>>;
    fn is_change_stream(&self) -> bool;
    /// A change stream whose collection or database is gone.
    fn is_invalidated(&self) -> bool;
    /// Where the last batch ended, when that was asked for.
    fn resume_token(&self) -> Option<DocBuf>;
    /// What it holds in memory between batches.
    fn held_bytes(&self) -> u64;
}
