//! Written entries into rows, batch by batch (the second half of R-APPLY-14).
//!
//! A batch is applied by several workers, entries about one document by one of them in order (R-APPLY-5). Its rows
//! carry the entries' timestamps, so nothing of it can be read until the batch is published: readers move from
//! the end of one batch to the end of the next (R-APPLY-7). Definition changes are batches of their own. So are
//! transactions of several entries, and those that prepare: each worker prepares its share, one decision ends them all.

use crate::data::lanes::{Lanes, Place, on_workers};
use crate::data::progress::Position;
use crate::data::queue::{Chunk, Queue};
use crate::data::{Deps, Lacking, Stop};
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_catalog::{Applying, IMPORT_MISSING, Marks, same_entry};
use pando_env::Component;
use pando_oplog::meta::{BatchLimits, Kind, batch_prefix};
use pando_oplog::{EntryView, Meta, OpType};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

const LIMITS: BatchLimits =
    BatchLimits { ops: limits::APPLY_BATCH_OPS_MAX, bytes: limits::APPLY_BATCH_BYTES_MAX };

/// Entries that are applied together, in the order of the log.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) parts: Vec<(Arc<Chunk>, Range<usize>)>,
    pub(crate) ops: usize,
    bytes: usize,
}

impl Batch {
    /// The next batch of what waits.
    pub(crate) fn of(waiting: &mut VecDeque<(Arc<Chunk>, usize)>) -> Batch {
        let mut batch = Batch::default();
        batch.take_from(waiting);
        batch
    }
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = (&Arc<Chunk>, &Meta)> {
        self.parts.iter().flat_map(|(c, r)| c.entries[r.clone()].iter().map(move |e| (c, e)))
    }
    /// Takes as many of the waiting entries as may share a batch; true when it can take no more.
    fn take_from(&mut self, waiting: &mut VecDeque<(Arc<Chunk>, usize)>) -> bool {
        while let Some((chunk, at)) = waiting.front_mut() {
            let rest = &chunk.entries[*at..];
            let n = batch_prefix(rest, self.ops, self.bytes, LIMITS);
            if n == 0 {
                return true;
            }
            let alone = rest[0].kind.stands_alone();
            self.ops += rest[..n].iter().map(|e| e.ops as usize).sum::<usize>();
            self.bytes += rest[..n].iter().map(|e| e.len as usize).sum::<usize>();
            self.parts.push((chunk.clone(), *at..*at + n));
            *at += n;
            let used_up = *at == chunk.entries.len();
            if used_up {
                waiting.pop_front();
            }
            if alone || !used_up {
                return true;
            }
        }
        false
    }
}

pub(crate) async fn run(deps: Deps, stop: Stop, from: Arc<Queue>, lacking: Lacking) {
    let mut waiting: VecDeque<(Arc<Chunk>, usize)> = VecDeque::new();
    loop {
        if waiting.is_empty() {
            match from.take_all().await {
                Some(chunks) => waiting.extend(chunks.into_iter().map(|c| (c, 0))),
                None => return,
            }
        }
        let mut batch = Batch::default();
        while !batch.take_from(&mut waiting) {
            match from.try_take_all() {
                Some(more) => waiting.extend(more.into_iter().map(|c| (c, 0))),
                None => break,
            }
        }
        deps.hold("rsSyncApplyStop", &stop).await;
        deps.panic_if_asked("oplog applier");
        let uneven = deps.catalog.is_before_min_valid();
        let why = if uneven { Applying::InitialSync } else { Applying::Steady };
        let applied = apply(&deps, batch, why).await;
        let looked = match applied {
            Ok(()) if uneven => look_at_min_valid(&deps).await,
            applied => applied,
        };
        if let Err(e) = looked {
            if e.code == IMPORT_MISSING {
                return give_way(&deps, &from, &lacking, e).await;
            }
            deps.upper.fatal("Failed to apply a batch of oplog entries", &e);
            return;
        }
    }
}

/// The log speaks of a collection whose files this member has not. It copies the set's data; where it is a leader that catches up, its
/// drain fails. Nothing is applied any more until the path ends.
async fn give_way(deps: &Deps, from: &Queue, lacking: &Lacking, why: Error) {
    let text = "A collection that was taken in is not here, the set's data is to be copied";
    deps.env.log.warn(Component::Repl, 9100189, text, |a| {
        a.data("error", &why);
    });
    *lacking.lock().unwrap_or_else(poisoned) = Some(why);
    deps.upper.resync();
    while from.take_all().await.is_some() {}
}

/// After a rollback that fetched documents: is everything applied that they may have seen?
async fn look_at_min_valid(deps: &Deps) -> Result<()> {
    let Some(mark) = deps.catalog.min_valid()? else { return Ok(()) };
    if deps.progress.applied().op_time < mark.at {
        return Ok(());
    }
    if deps.catalog.reach_min_valid()? {
        deps.catalog.resume_builds().await?;
        deps.upper.data_is_valid();
    } else {
        deps.upper.resync();
    }
    Ok(())
}

// tour: apply 4/9
/// Applies one batch and publishes it.
pub(crate) async fn apply(deps: &Deps, batch: Batch, why: Applying) -> Result<()> {
    let batch = Arc::new(batch);
    let (Some((_, first)), Some((_, last))) = (batch.entries().next(), batch.entries().next_back()) else {
        return Ok(());
    };
    let storage = deps.catalog.storage();
    if !storage.has_room() {
        storage.wait_room().await;
    }
    let from = deps.env.clock.mono();
    match first.kind {
        Kind::Alone => apply_alone(deps, &batch, why).await?,
        Kind::Spread => apply_spread(deps, &batch, why).await?,
        _ => apply_documents(deps, deps.lanes(&batch)?, why, first.op_time.ts).await?,
    }
    let metrics = &deps.instance.metrics.replication;
    metrics.applied_batches.took(deps.env.clock.mono().saturating_sub(from));
    metrics.applied_ops.add(batch.entries().count() as u64);
    // tour: apply 7/9
    storage.log().publish(last.op_time.ts);
    if batch.entries().any(|(_, e)| e.is_setting) {
        deps.upper.applied_settings();
    }
    deps.progress.applied_to(Position { op_time: last.op_time, wall: last.wall });
    deps.upper.progressed();
    Ok(())
}

/// May take long (an index that could not be built beside other writes): away from the async workers.
async fn apply_alone(deps: &Deps, batch: &Arc<Batch>, why: Applying) -> Result<()> {
    for (c, e) in batch.entries() {
        let view = EntryView::parse(c.doc(e))?;
        deps.catalog.settle_builds(&view).await;
    }
    let (deps_there, batch) = (deps.clone(), batch.clone());
    let work = move || {
        batch.entries().try_for_each(|(c, e)| {
            let view = EntryView::parse(c.doc(e))?;
            deps_there.catalog.apply_entry(&view, why)?;
            count(&deps_there, &view);
            note_sessions(&deps_there, std::slice::from_ref(&view));
            Ok(())
        })
    };
    deps.env.offload(work).await.unwrap_or_else(|| Err(Error::internal("applying an entry panicked")))
}

/// The end of a chain, or an entry that prepares. What defines something, and what is not applied when its turn comes, is
/// left to the catalog.
async fn apply_spread(deps: &Deps, batch: &Arc<Batch>, why: Applying) -> Result<()> {
    let lanes = deps.lanes(batch)?;
    let Some((chunk, e)) = batch.entries().next() else { return Ok(()) };
    let entry = EntryView::parse(chunk.doc(e))?;
    let prepares = entry.o.get("prepare").is_some_and(|v| v.is_truthy());
    if lanes.defines || (prepares && why != Applying::Steady) {
        return apply_alone(deps, batch, why).await;
    }
    if !prepares {
        return apply_documents(deps, lanes, why, entry.ts).await;
    }
    match prepare_shares(deps, lanes, &entry).await {
        // Two keys have one hash: within a single unit that does no harm.
        Err(e) if e.code == ErrorCode::WriteConflict => apply_alone(deps, batch, why).await,
        done => done,
    }
}

async fn prepare_shares(deps: &Deps, lanes: Lanes, entry: &EntryView<'_>) -> Result<()> {
    let (span, marks) = (lanes.span()?, Marks::default());
    let met = marks.clone();
    let shares = on_workers(deps, Arc::new(lanes), move |deps, lanes, lane| {
        let operations = lane.iter().map(|place| lanes.view(*place));
        deps.catalog.prepare_share(operations, span.clone(), &met)
    });
    deps.catalog.hold_prepared(entry, shares.await?, &marks)?;
    count(deps, entry);
    note_sessions(deps, std::slice::from_ref(entry));
    Ok(())
}

async fn apply_documents(deps: &Deps, lanes: Lanes, why: Applying, first: Timestamp) -> Result<()> {
    let (marks, batch) = (Marks::default(), lanes.batch.clone());
    let met = marks.clone();
    on_workers(deps, Arc::new(lanes), move |deps, lanes, lane| apply_lane(deps, lanes, lane, why, &met))
        .await?;
    for (chunk, e) in batch.entries().filter(|(_, e)| !matches!(e.kind, Kind::Document | Kind::Alone)) {
        let view = EntryView::parse(chunk.doc(e))?;
        // Also of what changes nothing here: a session has done it on another shard.
        note_sessions(deps, std::slice::from_ref(&view));
        if e.kind != Kind::Noop {
            deps.catalog.applied_transaction(&view, why.into());
        }
    }
    deps.catalog.finish_batch(first, &marks)
}

fn apply_lane(deps: &Deps, lanes: &Lanes, lane: &[Place], why: Applying, marks: &Marks) -> Result<()> {
    let mut rest = lane;
    while !rest.is_empty() {
        let n = rest.len().min(limits::APPLY_UNIT_OPS_MAX);
        let n = n + same_entry(&rest[n - 1..], why, |place| place.entry());
        let (now, later) = rest.split_at(n);
        let views = now.iter().map(|place| lanes.view(*place)).collect::<Result<Vec<_>>>()?;
        deps.catalog.apply_run(&views, why, marks)?;
        // What lies in earlier entries was counted when they came.
        let came_now = now.iter().zip(&views).filter(|(place, _)| place.entry().is_some());
        came_now.for_each(|(_, e)| count(deps, e));
        note_sessions(deps, &views);
        rest = later;
    }
    Ok(())
}

/// `opcountersRepl`: a transaction counts as what it does.
fn count(deps: &Deps, e: &EntryView<'_>) {
    let counts = &deps.instance.metrics.op_counters_repl;
    match e.op {
        OpType::Insert => counts.insert.inc(),
        OpType::Update => counts.update.inc(),
        OpType::Delete => counts.delete.inc(),
        OpType::Command => match e.inner() {
            Some(ops) => ops.flatten().for_each(|op| count(deps, &op)),
            None => counts.command.inc(),
        },
        OpType::Noop => {}
    }
}

impl Deps {
    fn lanes(&self, batch: &Arc<Batch>) -> Result<Lanes> {
        let workers = (batch.ops / self.writes_per_worker).clamp(1, self.workers);
        Lanes::of(&self.catalog, batch, workers)
    }
}

/// While the entries are still in the processor's cache.
fn note_sessions(deps: &Deps, applied: &[EntryView<'_>]) {
    if applied.iter().any(|e| e.lsid.is_some()) {
        deps.upper.applied_sessions(applied);
    }
}
