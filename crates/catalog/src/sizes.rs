//! How many documents and bytes a collection holds, without scanning.
//!
//! The running totals are atomics. Beside them lies what has changed since the last checkpoint, by commit
//! timestamp, so that a checkpoint at timestamp T can store the totals *as of T*: after a crash, replaying the
//! log from T corrects them exactly. (Byte totals may drift by what replay cannot know; see [`crate::apply`].)

use pando_base::panics::poisoned;
use pando_base::{Timestamp, limits};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Totals of one collection.
#[derive(Debug, Default)]
pub struct Sizes {
    count: AtomicI64,
    bytes: AtomicI64,
    /// Something changed since the totals were last stored.
    dirty: AtomicBool,
    since: Mutex<Since>,
}

#[derive(Debug, Default)]
struct Since {
    base: Totals,
    /// Ascending by timestamp, nearly: commits may overtake each other by a little.
    recent: VecDeque<(Timestamp, Totals)>,
}

/// A number of documents and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub count: i64,
    pub bytes: i64,
}

impl Totals {
    fn add(&mut self, other: Totals) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
    pub(crate) fn negated(self) -> Totals {
        Totals { count: -self.count, bytes: -self.bytes }
    }
}

impl Sizes {
    pub fn new(totals: Totals) -> Sizes {
        Sizes {
            count: AtomicI64::new(totals.count),
            bytes: AtomicI64::new(totals.bytes),
            dirty: AtomicBool::new(false),
            since: Mutex::new(Since { base: totals, recent: VecDeque::new() }),
        }
    }
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed).max(0) as u64
    }
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).max(0) as u64
    }
    fn since(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(poisoned)
    }
    /// A commit at `ts` changed the totals by `delta`.
    pub fn changed(&self, ts: Timestamp, delta: Totals) {
        if delta == Totals::default() {
            return;
        }
        self.count.fetch_add(delta.count, Ordering::Relaxed);
        self.bytes.fetch_add(delta.bytes, Ordering::Relaxed);
        let mut since = self.since();
        since.recent.push_back((ts, delta));
        // Under the lock: a checkpoint that looks between the two would forget this step.
        self.dirty.store(true, Ordering::Relaxed);
        if since.recent.len() > limits::SIZE_CHANGES_KEPT_MAX {
            since.thin();
        }
    }
    /// The totals as of `ts` when they are not those last stored; forgets the steps that led there.
    pub fn to_store(&self, ts: Timestamp) -> Option<Totals> {
        if !self.dirty.load(Ordering::Relaxed) {
            return None;
        }
        let mut since = self.since();
        self.dirty.store(false, Ordering::Relaxed);
        let mut kept = VecDeque::new();
        for (at, delta) in std::mem::take(&mut since.recent) {
            if at <= ts {
                since.base.add(delta);
            } else {
                kept.push_back((at, delta));
            }
        }
        // What lies above must be stored by the next checkpoint, though nothing else may change until then.
        if !kept.is_empty() {
            self.dirty.store(true, Ordering::Relaxed);
        }
        since.recent = kept;
        Some(since.base)
    }
    /// Sets the totals outright (after a count by scanning).
    pub fn set(&self, totals: Totals) {
        let mut since = self.since();
        since.base = totals;
        since.recent.clear();
        self.count.store(totals.count, Ordering::Relaxed);
        self.bytes.store(totals.bytes, Ordering::Relaxed);
        self.dirty.store(true, Ordering::Relaxed);
    }
}

impl Since {
    /// Joins neighbours when the checkpoint has not come for long: half the steps, the later timestamp of two.
    fn thin(&mut self) {
        let mut joined = VecDeque::with_capacity(self.recent.len() / 2 + 1);
        let mut steps = std::mem::take(&mut self.recent).into_iter();
        while let Some((mut ts, mut delta)) = steps.next() {
            if let Some((next_ts, next)) = steps.next() {
                ts = ts.max(next_ts);
                delta.add(next);
            }
            joined.push_back((ts, delta));
        }
        self.recent = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_can_be_asked_as_of_a_timestamp() {
        let sizes = Sizes::new(Totals { count: 10, bytes: 100 });
        for i in 1..=5 {
            sizes.changed(Timestamp(i), Totals { count: 1, bytes: 7 });
        }
        assert_eq!(sizes.to_store(Timestamp(3)), Some(Totals { count: 13, bytes: 121 }));
        assert_eq!((sizes.count(), sizes.bytes()), (15, 135));
        let later = sizes.to_store(Timestamp(9)).map(|t| t.count);
        assert_eq!(later, Some(15), "though nothing has changed meanwhile");
        assert_eq!(sizes.to_store(Timestamp(9)), None);
    }

    #[test]
    fn a_late_checkpoint_bounds_the_steps_kept() {
        let sizes = Sizes::default();
        for i in 0..limits::SIZE_CHANGES_KEPT_MAX as u64 * 3 {
            sizes.changed(Timestamp(i), Totals { count: 1, bytes: 1 });
        }
        assert!(sizes.since().recent.len() <= limits::SIZE_CHANGES_KEPT_MAX);
        let all = sizes.to_store(Timestamp::MAX).map(|t| t.count);
        assert_eq!(all, Some(limits::SIZE_CHANGES_KEPT_MAX as i64 * 3));
    }
}
