//! The oplog from a timestamp on, without planner and matcher: entries go from the log into replies as they are.
//!
//! Members that follow this one ask for nothing else, all the time, so this is the cheap road. Entries behind a hole
//! of the log are not visible yet.

use crate::cursors::batch::Batch;
use crate::cursors::body::More;
use pando_base::{Result, Timestamp};
use pando_bson::{RawDoc, Value};
use pando_command::OpCtx;
use pando_oplog::entry::for_clients;
use pando_request::FindArgs;
use pando_storage::{Bytes, OpLog, OplogCursor};
use std::ops::Bound;

/// Entries between two looks at whether to stop.
const STEP: u32 = 1000;

pub(crate) struct OplogTail {
    cursor: OplogCursor,
    /// An entry that did not fit into the last batch.
    stash: Option<Bytes>,
    tailable: bool,
    /// Members get the entries as they are in the log, clients as MongoDB's look.
    for_member: bool,
}

/// The start of a query that this cursor can answer: `{ts: {$gte: T}}` in the log's own order, nothing else.
pub(crate) fn start_of(args: &FindArgs<'_>) -> Option<Bound<Timestamp>> {
    let plain = args.sort.is_none()
        && args.projection.is_none()
        && args.hint.is_none()
        && args.skip == 0
        && args.limit.is_none()
        && args.min.is_none()
        && args.max.is_none()
        && !args.return_key
        && !args.show_record_id
        && args.collation.is_none()
        && args.let_vars.is_none();
    let only = |d: &RawDoc| d.count() == 1;
    let filter = args.filter.filter(|f| plain && only(f))?;
    let bound = filter.get("ts")?.as_doc().filter(|d| only(d))?;
    match (bound.first()?.name(), bound.first()?.value()) {
        ("$gte", Value::Timestamp(ts)) => Some(Bound::Included(ts)),
        ("$gt", Value::Timestamp(ts)) => Some(Bound::Excluded(ts)),
        _ => None,
    }
}

impl OplogTail {
    pub(crate) fn new(log: &OpLog, from: Bound<Timestamp>, args: &FindArgs<'_>) -> OplogTail {
        let (tailable, for_member) = (args.tailable, args.term.is_some());
        OplogTail { cursor: log.read(from, false), stash: None, tailable, for_member }
    }
    fn push(&self, batch: &mut Batch<'_>, entry: &[u8]) {
        let bare = if self.for_member { None } else { for_clients(RawDoc::trusted(entry)) };
        batch.push(bare.as_deref().map_or(entry, RawDoc::as_bytes));
    }
    /// Appends entries until the batch is full or the visible end is reached.
    pub(crate) async fn fill(&mut self, ctx: &OpCtx, batch: &mut Batch<'_>) -> Result<More> {
        self.cursor.refresh();
        if let Some(entry) = self.stash.take() {
            self.push(batch, &entry);
        }
        let mut step = 0;
        while !batch.is_full() {
            let Some((_, entry)) = self.cursor.next()? else {
                return Ok(if self.tailable { More::Yes } else { More::No });
            };
            if !batch.has_room(entry.len()) {
                self.stash = Some(entry);
                return Ok(More::Yes);
            }
            self.push(batch, &entry);
            step += 1;
            if step == STEP {
                step = 0;
                ctx.yield_now().await?;
            }
        }
        Ok(More::Yes)
    }
}
