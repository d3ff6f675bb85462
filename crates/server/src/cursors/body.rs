//! What a cursor holds between batches.

use crate::change_stream::ChangeStream;
use crate::cursors::batch::Batch;
use crate::cursors::oplog_tail::OplogTail;
use crate::cursors::parked::ParkedCursor;
use crate::cursors::pipeline::PipelineCursor;
use crate::cursors::query::QueryCursor;
use crate::read::Reads;
use pando_base::Result;
use pando_bson::DocBuf;
use pando_command::OpCtx;
use pando_env::BoxFuture;
use pando_query::script::Scripts;
use pando_query::source::Source;
use std::sync::Arc;

pub(crate) use crate::cursors::parked::{More, Until};

/// The rest of a result.
pub(crate) enum CursorBody {
    /// Documents that are all there already (listings).
    List(std::vec::IntoIter<DocBuf>),
    Query(Box<QueryCursor>),
    /// The oplog from some timestamp on: what members that follow this one ask for.
    Oplog(Box<OplogTail>),
    Pipeline(Box<PipelineCursor>),
    ChangeStream(Box<ChangeStream>),
}

impl ParkedCursor for CursorBody {
    fn next_batch<'a>(
        &'a mut self,
        reads: &'a Reads,
        ctx: &'a OpCtx,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<More>> {
        Box::pin(self.fill(reads, ctx, batch, None))
    }
    fn await_batch<'a>(
        &'a mut self,
        reads: &'a Reads,
        ctx: &'a OpCtx,
        batch: &'a mut Batch<'_>,
        until: Until,
    ) -> BoxFuture<'a, Result<More>> {
        Box::pin(self.await_data(reads, ctx, batch, until))
    }
    fn scripts(&self) -> Option<&Arc<dyn Scripts>> {
        match self {
            CursorBody::Query(q) => q.scripts(),
            CursorBody::Pipeline(p) => p.scripts(),
            _ => None,
        }
    }
    fn is_change_stream(&self) -> bool {
        matches!(self, CursorBody::ChangeStream(_))
    }
    fn is_invalidated(&self) -> bool {
        matches!(self, CursorBody::ChangeStream(c) if c.is_invalidated())
    }
    fn resume_token(&self) -> Option<DocBuf> {
        match self {
            CursorBody::Query(q) => q.resume_token(),
            CursorBody::ChangeStream(c) => Some(c.resume_token()),
            _ => None,
        }
    }
    fn held_bytes(&self) -> u64 {
        let listed = |docs: &std::vec::IntoIter<DocBuf>| {
            docs.as_slice().iter().map(|d| d.byte_len() as u64).sum::<u64>()
        };
        match self {
            CursorBody::List(docs) => listed(docs),
            CursorBody::Query(q) => q.held_bytes(),
            CursorBody::Pipeline(p) => p.held_bytes(listed),
            CursorBody::Oplog(_) | CursorBody::ChangeStream(_) => 0,
        }
    }
}

impl CursorBody {
    /// Appends documents until the batch is full or there are no more. `source` is what the query was opened on
    /// a moment ago, if it was.
    pub(crate) async fn fill(
        &mut self,
        reads: &Reads,
        ctx: &OpCtx,
        batch: &mut Batch<'_>,
        source: Option<Box<dyn Source>>,
    ) -> Result<More> {
        match self {
            CursorBody::Query(q) => q.fill(reads, ctx, batch, source).await,
            CursorBody::Pipeline(p) => p.fill(reads, ctx, batch, source).await,
            CursorBody::Oplog(o) => o.fill(ctx, batch).await,
            CursorBody::ChangeStream(c) => c.fill(ctx, batch).await,
            CursorBody::List(docs) => {
                while !batch.is_full() {
                    match docs.as_slice().first() {
                        None => return Ok(More::No),
                        Some(d) if !batch.has_room(d.byte_len()) => return Ok(More::Yes),
                        Some(d) => batch.push(d.as_bytes()),
                    }
                    docs.next();
                }
                Ok(if docs.as_slice().is_empty() { More::No } else { More::Yes })
            }
        }
    }

    /// The fixed point a snapshot cursor reads at.
    pub(crate) fn at_cluster_time(&self) -> Option<pando_base::Timestamp> {
        match self {
            CursorBody::Query(q) => q.at_cluster_time(),
            CursorBody::Pipeline(p) => p.at_cluster_time(),
            CursorBody::List(_) | CursorBody::Oplog(_) | CursorBody::ChangeStream(_) => None,
        }
    }

    /// Waits for documents to come in, then fills the batch.
    pub(crate) async fn await_data(
        &mut self,
        reads: &Reads,
        ctx: &OpCtx,
        batch: &mut Batch<'_>,
        until: Until,
    ) -> Result<More> {
        if let CursorBody::ChangeStream(c) = self {
            return c.await_data(ctx, batch, until).await;
        }
        let commit_point_moved =
            || until.committed_after.is_some_and(|known| reads.replication.positions().committed > known);
        let from = ctx.env().clock.mono();
        loop {
            let seen = reads.storage.log().visible();
            let progress = reads.replication.progress.changed().version();
            let more = self.fill(reads, ctx, batch, None).await?;
            let left = until.deadline.saturating_sub(ctx.env().clock.mono());
            if batch.len() > 0 || more == More::No || left.is_zero() || commit_point_moved() {
                ctx.debug(|d| d.awaited = ctx.env().clock.mono().saturating_sub(from));
                return Ok(more);
            }
            let changed = reads.storage.log().wait_visible(seen);
            if until.committed_after.is_some() {
                let either =
                    crate::lifecycle::either(changed, reads.replication.progress.changed().changed(progress));
                ctx.interruptible(ctx.env().timeout(left, either)).await?;
            } else {
                ctx.interruptible(ctx.env().timeout(left, changed)).await?;
            }
        }
    }
}
