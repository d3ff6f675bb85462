//! Prepared transactions that take effect before the place of their commit in the log.
//!
//! Their rows carry the timestamp of the commit's entry, as every row does: it says how far the log must reach for them to
//! be there, and so what checkpoints take and rollbacks forget. Readers between the commit timestamp and that entry see
//! them all the same; this table tells which those are, until nobody can read so far back.

use crate::prepared::Prepares;
use crate::snapshot::{OnPrepared, Snapshot};
use pando_base::panics::poisoned;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

/// When the rows of an entry take effect.
#[derive(Clone, Copy, Debug)]
struct Effect {
    prepare: u64,
    commit: u64,
}

/// By the timestamp of the commit's entry.
#[derive(Debug, Default)]
pub(crate) struct Lates {
    count: AtomicUsize,
    rows: RwLock<BTreeMap<u64, Effect>>,
}

/// What a snapshot sees above its read timestamp.
#[derive(Debug, Default)]
pub(crate) enum Late {
    #[default]
    Nothing,
    /// A reader that ignores prepared transactions sees those that were committed when it began.
    These(Box<[u64]>),
    /// One that waits for them sees also those that commit meanwhile.
    All(Arc<Lates>),
}

impl Lates {
    /// Once all rows are in place. What no snapshot at or above `needed` asks for is forgotten.
    pub(crate) fn add(&self, entry: u64, prepare: u64, commit: u64, needed: u64) {
        let mut rows = self.rows.write().unwrap_or_else(poisoned);
        rows.retain(|at, _| *at > needed);
        if commit < entry {
            rows.insert(entry, Effect { prepare, commit });
        }
        self.count.store(rows.len(), Ordering::Release);
    }
    /// After a rollback.
    pub(crate) fn forget_above(&self, ts: u64) {
        let mut rows = self.rows.write().unwrap_or_else(poisoned);
        rows.retain(|at, _| *at <= ts);
        self.count.store(rows.len(), Ordering::Release);
    }
    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
    /// Whether `snap` sees rows of the entry because they take effect before it.
    pub(crate) fn shows(&self, entry: u64, snap: &Snapshot) -> bool {
        let rows = self.rows.read().unwrap_or_else(poisoned);
        rows.get(&entry).is_some_and(|e| e.is_seen_by(snap))
    }
    pub(crate) fn seen_by(self: &Arc<Lates>, snap: &Snapshot, prepares: &Prepares) -> Late {
        match snap.on_prepared {
            OnPrepared::Conflict if !self.is_empty() || !prepares.is_empty() => Late::All(self.clone()),
            OnPrepared::Ignore if !self.is_empty() => {
                let rows = self.rows.read().unwrap_or_else(poisoned);
                let seen: Box<[u64]> =
                    rows.iter().filter(|(_, e)| e.is_seen_by(snap)).map(|(at, _)| *at).collect();
                if seen.is_empty() { Late::Nothing } else { Late::These(seen) }
            }
            _ => Late::Nothing,
        }
    }
}

impl Effect {
    /// Also the prepare must have been there when the snapshot was taken, or it would see a part.
    fn is_seen_by(&self, snap: &Snapshot) -> bool {
        self.commit <= snap.read && snap.holds(self.prepare)
    }
}
