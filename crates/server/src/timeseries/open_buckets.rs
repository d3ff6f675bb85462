//! What is remembered of time series between inserts: the bucket that each source writes to, and counters.

use pando_access::{Guard, Lock};
use pando_base::{HashMap, Uuid, limits};
use pando_bson::{DocBuf, DocBuilder, ObjectId};
use pando_command::OpCtx;
use pando_query::timeseries::NoRoom;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Collections that share a turn wait for each other; more turns than cores make that rare.
const TURNS: usize = 64;

pub(crate) struct OpenBuckets {
    state: Mutex<State>,
    turns: Vec<Lock>,
}

#[derive(Default)]
struct State {
    /// Per collection of buckets and source.
    known: HashMap<(Uuid, DocBuf), ObjectId>,
    counts: HashMap<Uuid, BucketCounts>,
}

/// Of one collection of buckets since the start of the process, as `collStats` tells them.
#[derive(Clone, Copy, Default)]
pub(crate) struct BucketCounts {
    pub(crate) inserts: i64,
    pub(crate) updates: i64,
    pub(crate) opened_due_to_metadata: i64,
    pub(crate) closed_due_to_count: i64,
    pub(crate) closed_due_to_size: i64,
    pub(crate) closed_due_to_time_forward: i64,
    pub(crate) closed_due_to_time_backward: i64,
    pub(crate) reopened: i64,
    pub(crate) commits: i64,
    pub(crate) waits: i64,
    pub(crate) measurements: i64,
}

impl BucketCounts {
    pub(crate) fn closed(&mut self, why: NoRoom) {
        *match why {
            NoRoom::Count => &mut self.closed_due_to_count,
            NoRoom::Size => &mut self.closed_due_to_size,
            NoRoom::TimeForward => &mut self.closed_due_to_time_forward,
            NoRoom::TimeBackward => &mut self.closed_due_to_time_backward,
        } += 1;
    }
    fn add(&mut self, more: &BucketCounts) {
        for ((_, mine), (_, theirs)) in self.fields_mut().into_iter().zip(more.fields()) {
            *mine += theirs;
        }
    }
    fn fields_mut(&mut self) -> [(&'static str, &mut i64); 11] {
        [
            ("numBucketInserts", &mut self.inserts),
            ("numBucketUpdates", &mut self.updates),
            ("numBucketsOpenedDueToMetadata", &mut self.opened_due_to_metadata),
            ("numBucketsClosedDueToCount", &mut self.closed_due_to_count),
            ("numBucketsClosedDueToSize", &mut self.closed_due_to_size),
            ("numBucketsClosedDueToTimeForward", &mut self.closed_due_to_time_forward),
            ("numBucketsClosedDueToTimeBackward", &mut self.closed_due_to_time_backward),
            ("numBucketsReopened", &mut self.reopened),
            ("numCommits", &mut self.commits),
            ("numWaits", &mut self.waits),
            ("numMeasurementsCommitted", &mut self.measurements),
        ]
    }
    fn fields(&self) -> [(&'static str, i64); 11] {
        let mut copy = *self;
        copy.fields_mut().map(|(name, n)| (name, *n))
    }
    pub(crate) fn append_to(&self, b: &mut DocBuilder) {
        for (name, n) in self.fields() {
            crate::statistics::sizes::int(b, name, n as u64);
        }
        if self.commits > 0 {
            let each = self.measurements / self.commits;
            crate::statistics::sizes::int(b, "avgNumMeasurementsPerCommit", each as u64);
        }
    }
}

impl Default for OpenBuckets {
    fn default() -> OpenBuckets {
        OpenBuckets { state: Mutex::default(), turns: (0..TURNS).map(|_| Lock::new()).collect() }
    }
}

impl OpenBuckets {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn get(&self, coll: Uuid, source: &DocBuf) -> Option<ObjectId> {
        self.state().known.get(&(coll, source.clone())).copied()
    }
    /// After a commit: where the sources go on, and what it came to.
    pub(crate) fn committed(
        &self,
        coll: Uuid,
        buckets: impl Iterator<Item = (DocBuf, ObjectId)>,
        counts: &BucketCounts,
    ) {
        let mut state = self.state();
        for (source, id) in buckets {
            // What is forgotten is looked for in the collection.
            if state.known.len() >= limits::OPEN_BUCKETS_MAX {
                state.known.clear();
            }
            state.known.insert((coll, source), id);
        }
        if state.counts.len() >= limits::OPEN_BUCKETS_MAX {
            state.counts.clear();
        }
        state.counts.entry(coll).or_default().add(counts);
    }
    pub(crate) fn counts(&self, coll: Uuid) -> BucketCounts {
        self.state().counts.get(&coll).copied().unwrap_or_default()
    }
    /// One writer of measurements at a time, so that they do not all change the same buckets and try again. Held for
    /// one unit of work, no wait within it.
    pub(crate) async fn turn(&self, ctx: &OpCtx, coll: Uuid) -> pando_base::Result<(Guard, bool)> {
        let lock = &self.turns[usize::from(coll.0[0]) % TURNS];
        match lock.try_exclusive() {
            Some(turn) => Ok((turn, false)),
            None => Ok((ctx.interruptible(lock.exclusive(&ctx.env().clock)).await?, true)),
        }
    }
}
