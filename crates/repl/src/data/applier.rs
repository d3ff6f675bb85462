//! Written entries into rows, batch by batch (the second half of R-APPLY-14).
//!
//! A batch is applied by several workers, entries about one document by one of them in order (R-APPLY-5). Its rows
//! carry the entries' timestamps, so nothing of it can be read until the batch is published: readers move from
//! the end of one batch to the end of the next (R-APPLY-7). Definition changes are batches of their own.

use crate::data::progress::Position;
use crate::data::queue::{Chunk, Queue};
use crate::data::{Deps, Stop};
use pando_base::{Error, HashMap, Result, limits};
use pando_catalog::{Applying, Catalog, Marks, Spread};
use pando_oplog::meta::{BatchLimits, Kind, batch_prefix};
use pando_oplog::{EntryView, Meta, OpType};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

const LIMITS: BatchLimits =
    BatchLimits { ops: limits::APPLY_BATCH_OPS_MAX, bytes: limits::APPLY_BATCH_BYTES_MAX };

/// Entries that are applied together, in the order of the log.
#[derive(Default)]
pub(crate) struct Batch {
    parts: Vec<(Arc<Chunk>, Range<usize>)>,
    ops: usize,
    bytes: usize,
}

impl Batch {
    /// The next batch of what waits.
    pub(crate) fn of(waiting: &mut VecDeque<(Arc<Chunk>, usize)>) -> Batch {
        let mut batch = Batch::default();
        batch.take_from(waiting);
        batch
    }
    fn entries(&self) -> impl DoubleEndedIterator<Item = (&Arc<Chunk>, &Meta)> {
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
            let alone = rest[0].kind == Kind::Alone;
            self.ops += n;
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

pub(crate) async fn run(deps: Deps, stop: Stop, from: Arc<Queue>) {
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
        let uneven = deps.catalog.is_before_min_valid();
        let why = if uneven { Applying::InitialSync } else { Applying::Steady };
        let applied = apply(&deps, batch, why).await;
        if let Err(e) = applied.and_then(|()| if uneven { look_at_min_valid(&deps) } else { Ok(()) }) {
            deps.upper.fatal("Failed to apply a batch of oplog entries", &e);
            return;
        }
    }
}

/// After a rollback that fetched documents: is everything applied that they may have seen?
fn look_at_min_valid(deps: &Deps) -> Result<()> {
    let Some(mark) = deps.catalog.min_valid()? else { return Ok(()) };
    if deps.progress.applied().op_time < mark.at {
        return Ok(());
    }
    if deps.catalog.reach_min_valid()? {
        deps.upper.data_is_valid();
    } else {
        deps.upper.resync();
    }
    Ok(())
}

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
    if first.kind == Kind::Alone {
        apply_alone(deps, &batch, why).await?;
    } else {
        apply_documents(deps, &batch, why, first.op_time.ts).await?;
    }
    let metrics = &deps.instance.metrics.replication;
    metrics.applied_batches.took(deps.env.clock.mono().saturating_sub(from));
    metrics.applied_ops.add(batch.ops as u64);
    storage.log().publish(last.op_time.ts);
    if batch.entries().any(|(_, e)| e.is_setting) {
        deps.upper.applied_settings();
    }
    deps.progress.applied_to(Position { op_time: last.op_time, wall: last.wall });
    deps.upper.progressed();
    Ok(())
}

/// May take long (an index build): away from the async workers.
async fn apply_alone(deps: &Deps, batch: &Arc<Batch>, why: Applying) -> Result<()> {
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

async fn apply_documents(
    deps: &Deps,
    batch: &Arc<Batch>,
    why: Applying,
    first: pando_base::Timestamp,
) -> Result<()> {
    let marks = Marks::default();
    let workers = (batch.ops / limits::APPLY_ENTRIES_PER_WORKER_MIN).clamp(1, deps.workers);
    let lanes = lanes_of(&deps.catalog, batch, workers)?;
    if workers == 1 {
        for lane in &lanes {
            apply_lane(deps, batch, lane, why, &marks)?;
        }
    } else {
        let failed = Arc::new(Mutex::new(None));
        let working: Vec<_> = lanes
            .into_iter()
            .map(|lane| {
                let (deps_there, batch, marks) = (deps.clone(), batch.clone(), marks.clone());
                let failed = failed.clone();
                deps.env.tasks.offload(Box::new(move || {
                    let panicked = Error::internal("a worker of the applier panicked");
                    let mut guard = FailOnPanic(failed, Some(panicked));
                    guard.1 = apply_lane(&deps_there, &batch, &lane, why, &marks).err();
                }))
            })
            .collect();
        for work in working {
            work.await;
        }
        if let Some(e) = failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(e);
        }
    }
    deps.catalog.finish_batch(first, &marks)
}

/// Leaves its error behind when it is dropped, also by a panic.
struct FailOnPanic(Arc<Mutex<Option<Error>>>, Option<Error>);

impl Drop for FailOnPanic {
    fn drop(&mut self) {
        if let Some(e) = self.1.take() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
        }
    }
}

/// Part and place within its chunk.
type Place = (u32, u32);

/// Who applies what: entries about one document go to one worker.
fn lanes_of(catalog: &Catalog, batch: &Batch, workers: usize) -> Result<Vec<Vec<Place>>> {
    let mut lanes: Vec<Vec<Place>> = (0..workers).map(|_| Vec::with_capacity(batch.ops / workers)).collect();
    let mut spreads: HashMap<u64, Spread> = HashMap::default();
    for (part, (chunk, range)) in batch.parts.iter().enumerate() {
        for at in range.clone() {
            let e = &chunk.entries[at];
            if e.kind == Kind::Noop {
                continue;
            }
            let spread = match spreads.get(&e.coll) {
                _ if workers == 1 => Spread::ByCollection,
                Some(known) => *known,
                None => {
                    let spread = catalog.spread_of(&EntryView::parse(chunk.doc(e))?);
                    *spreads.entry(e.coll).or_insert(spread)
                }
            };
            let hash = if spread == Spread::ByDocument { e.doc } else { e.coll };
            let lane = (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % workers;
            lanes[lane].push((part as u32, at as u32));
        }
    }
    Ok(lanes)
}

fn apply_lane(deps: &Deps, batch: &Batch, lane: &[Place], why: Applying, marks: &Marks) -> Result<()> {
    for some in lane.chunks(limits::APPLY_UNIT_OPS_MAX) {
        let views = some
            .iter()
            .map(|(part, at)| {
                let chunk = &batch.parts[*part as usize].0;
                EntryView::parse(chunk.doc(&chunk.entries[*at as usize]))
            })
            .collect::<Result<Vec<_>>>()?;
        deps.catalog.apply_run(&views, why, marks)?;
        views.iter().for_each(|e| count(deps, e));
        note_sessions(deps, &views);
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

/// While the entries are still in the processor's cache.
fn note_sessions(deps: &Deps, applied: &[EntryView<'_>]) {
    if applied.iter().any(|e| e.lsid.is_some()) {
        deps.upper.applied_sessions(applied);
    }
}
