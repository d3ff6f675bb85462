//! How many documents and bytes a collection holds, without scanning.
//!
//! The running totals are atomics. Beside them lies what has changed since the last checkpoint, by commit
//! timestamp, so that a checkpoint at timestamp T can store the totals *as of T*: after a crash, replaying the
//! log from T corrects them exactly. (Byte totals may drift by what replay cannot know; see [`crate::apply::entry`].)

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
    /// Of a collection that has just been made. The next checkpoint stores them though nothing has changed: there may be a row of an
    /// older collection with this UUID, which was given up and copied again.
    pub fn of_new() -> Sizes {
        Sizes { dirty: AtomicBool::new(true), ..Sizes::default() }
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
    /// A commit at `ts` changed the totals by `delta`. No checkpoint will stand before `counted`, which is asked seldom.
    pub fn changed(&self, ts: Timestamp, delta: Totals, counted: impl FnOnce() -> Timestamp) {
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
            since.thin(counted());
        }
    }
    /// The count, which may be less than nothing where it is wrong.
    pub fn signed_count(&self) -> i64 {
        self.count.load(Ordering::Relaxed)
    }
    /// The count was wrong by so much at some moment, and so it is since.
    pub fn mend(&self, missing: i64) {
        if missing != 0 {
            let mut since = self.since();
            since.base.count += missing;
            self.count.fetch_add(missing, Ordering::Relaxed);
            self.dirty.store(true, Ordering::Relaxed);
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
    /// Sets the totals of this moment outright (after a count by scanning). Nobody else may be writing. The steps since the
    /// last checkpoint stay: the next one may stand before some of them, whose entries are then replayed over it.
    pub fn set(&self, totals: Totals) {
        let mut since = self.since();
        let recent = since.recent.iter().map(|(_, delta)| *delta);
        since.base = recent.fold(totals, |mut base, delta| {
            base.add(delta.negated());
            base
        });
        self.count.store(totals.count, Ordering::Relaxed);
        self.bytes.store(totals.bytes, Ordering::Relaxed);
        self.dirty.store(true, Ordering::Relaxed);
    }
}

impl Since {
    /// When the checkpoint has not come for long: steps that the next one has behind it for certain become one. Where that
    /// leaves too many, because nothing is stable any more, neighbours are joined, the later timestamp of two: a count as of
    /// a timestamp between them is a little low.
    fn thin(&mut self, counted: Timestamp) {
        let mut joined = VecDeque::with_capacity(self.recent.len() / 2 + 1);
        let (base, recent) = (&mut self.base, &mut self.recent);
        recent.retain(|(ts, delta)| {
            if *ts <= counted {
                base.add(*delta);
            }
            *ts > counted
        });
        if recent.len() <= limits::SIZE_CHANGES_KEPT_MAX / 2 {
            return;
        }
        let mut steps = std::mem::take(recent).into_iter();
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
            sizes.changed(Timestamp(i), Totals { count: 1, bytes: 7 }, || Timestamp(0));
        }
        assert_eq!(sizes.to_store(Timestamp(3)), Some(Totals { count: 13, bytes: 121 }));
        assert_eq!((sizes.count(), sizes.bytes()), (15, 135));
        let later = sizes.to_store(Timestamp(9)).map(|t| t.count);
        assert_eq!(later, Some(15), "though nothing has changed meanwhile");
        assert_eq!(sizes.to_store(Timestamp(9)), None);
    }

    #[test]
    fn steps_that_are_stable_become_one_and_the_others_stay_exact() {
        let sizes = Sizes::default();
        let many = limits::SIZE_CHANGES_KEPT_MAX as u64 * 3;
        let behind = 100;
        for i in 1..=many {
            sizes
                .changed(Timestamp(i), Totals { count: 1, bytes: 1 }, || Timestamp(i.saturating_sub(behind)));
        }
        assert!(sizes.since().recent.len() <= limits::SIZE_CHANGES_KEPT_MAX);
        assert_eq!(
            sizes.to_store(Timestamp(many - behind / 2)).map(|t| t.count),
            Some((many - behind / 2) as i64)
        );
        assert_eq!(sizes.count(), many);
    }

    #[test]
    fn a_count_by_scanning_is_of_now_not_of_the_next_checkpoint() {
        let sizes = Sizes::default();
        sizes.changed(Timestamp(51), Totals { count: 1, bytes: 7 }, || Timestamp(0));
        sizes.set(Totals { count: 11, bytes: 77 });
        assert_eq!(sizes.to_store(Timestamp(50)), Some(Totals { count: 10, bytes: 70 }));
        assert_eq!((sizes.count(), sizes.bytes()), (11, 77));
        assert_eq!(sizes.to_store(Timestamp(51)), Some(Totals { count: 11, bytes: 77 }));
    }

    #[test]
    fn a_late_checkpoint_bounds_the_steps_kept() {
        let sizes = Sizes::default();
        for i in 0..limits::SIZE_CHANGES_KEPT_MAX as u64 * 3 {
            sizes.changed(Timestamp(i), Totals { count: 1, bytes: 1 }, || Timestamp(0));
        }
        assert!(sizes.since().recent.len() <= limits::SIZE_CHANGES_KEPT_MAX);
        let all = sizes.to_store(Timestamp::MAX).map(|t| t.count);
        assert_eq!(all, Some(limits::SIZE_CHANGES_KEPT_MAX as i64 * 3));
    }
}
