//! A plan being run on a collection, over any number of batches.

use super::point::ReadPoint;
use super::{Reads, yield_from};
use crate::statistics::plan_use;
use pando_access::transaction::conflicts::Undecided;
use pando_access::{Acquisition, CollectionScan, open_txn};
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_command::OpCtx;
use pando_query::exec::Executor;
use pando_query::plan::Query;
use pando_query::source::Source;
use pando_storage::OnPrepared;
use std::time::Duration;

/// What goes wrong while a plan runs gets MongoDB's prefix; a place that was lost between two batches does not.
pub(crate) fn in_plan(e: Error, context: &'static str) -> Error {
    let at_restore = e.code == ErrorCode::CappedPositionLost && !e.message.contains("failure to restore");
    if at_restore { e } else { e.context(context) }
}

/// The plan, where it reads, and how far it is.
pub(crate) struct Scan {
    coll: CollectionScan,
    pub(crate) point: ReadPoint,
    pub(crate) exec: Executor,
    /// Its use of indexes has been counted.
    pub(crate) noted: bool,
}

impl Reads {
    /// Plans `query` and opens what it reads from.
    pub(crate) fn open_scan(
        &self,
        ctx: &OpCtx,
        coll: &Acquisition,
        query: Query,
        allow_disk_use: Option<bool>,
    ) -> Result<(Scan, Box<dyn Source>)> {
        let point = self.point(ctx);
        let (coll, source) = self.access.scan(ctx, coll, self.at(point))?;
        let exec = Executor::new(query, &*source, self.resources(allow_disk_use))?;
        Ok((Scan { coll, point, exec, noted: false }, source))
    }
}

impl Scan {
    pub(crate) fn at_cluster_time(&self) -> Option<Timestamp> {
        match self.point {
            ReadPoint::At(ts) => Some(ts),
            _ => None,
        }
    }
    /// Before a batch that goes on, what was prepared up to here must be decided: rows behind it could not be told from
    /// those it has passed.
    pub(crate) fn must_be_decided(&self, reads: &Reads, ctx: &OpCtx) -> Result<Option<Undecided>> {
        let upto = match open_txn(ctx) {
            Some(open) => open.with(|unit| Ok(unit.txn().read_ts()))?,
            None if self.coll.on_prepared() == OnPrepared::Ignore => return Ok(None),
            None => self.at_cluster_time().unwrap_or_else(|| reads.storage.log().clock()),
        };
        Ok(Some((self.coll.acquisition().collection().clone(), upto)))
    }
    /// What to read from now; 175 when the collection is not what the plan was made for.
    pub(crate) fn reopen(&self, reads: &Reads, ctx: &OpCtx) -> Result<Box<dyn Source>> {
        if !ctx.in_txn()
            && let Some(now) = reads.access.changed_since(self.coll.acquisition())?
        {
            plan_use::check_indexes(self.coll.acquisition(), &now, self.exec.plan())?;
        }
        reads.access.rescan(ctx, &self.coll, reads.at(self.point))
    }
    /// Lets others run; a snapshot that has become old is exchanged for a new one.
    pub(crate) async fn pause(
        &mut self,
        reads: &Reads,
        ctx: &OpCtx,
        source: &mut Box<dyn Source>,
        opened: &mut Duration,
    ) -> Result<()> {
        yield_from(ctx, &self.exec, self.coll.acquisition()).await?;
        let now = ctx.env().clock.mono();
        if now.saturating_sub(*opened) > Duration::from_secs(limits::SNAPSHOT_AGE_SECS_MAX) {
            self.exec.save();
            let wait = self.must_be_decided(reads, ctx)?;
            reads.access.past_prepared(ctx, wait).await?;
            *source = self.reopen(reads, ctx)?;
            *opened = now;
        }
        Ok(())
    }
    /// At the end of a batch: the plan is counted once, and nothing of the snapshot is kept.
    pub(crate) fn end_batch(&mut self, reads: &Reads, ctx: &OpCtx, goes_on: bool) {
        if !self.noted && self.exec.plan().is_some() {
            self.noted = true;
            reads.note_plan(ctx, &self.exec, self.coll.acquisition());
        }
        if goes_on {
            self.exec.save();
        }
    }
}
