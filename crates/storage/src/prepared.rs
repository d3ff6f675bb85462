//! Keys written by prepared transactions: undecided, so a reader at or above the prepare timestamp cannot know
//! what it should see.

use crate::snapshot::Snapshot;
use lsm_tree::Slice;
use pando_base::panics::poisoned;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

#[derive(Default)]
pub(crate) struct Prepares {
    /// Lets readers pass without the lock when nothing is prepared.
    count: AtomicUsize,
    keys: RwLock<BTreeMap<(u32, Slice), u64>>,
    /// By the prepare timestamp.
    entries: Mutex<BTreeMap<u64, Entries>>,
}

/// What the log must keep of a prepared transaction.
struct Entries {
    first: u64,
    /// Where its decision is, once there is one: recovery to a point before that needs the entries still.
    decided: u64,
}

impl Prepares {
    pub(crate) fn add<'a>(&self, keys: impl Iterator<Item = (u32, &'a Slice)>, ts: u64) {
        // In order, neighbours are found where the last one was put: readers wait less long.
        let mut keys: Vec<_> = keys.map(|(ident, key)| (ident, key.clone())).collect();
        keys.sort_unstable();
        let mut map = self.keys.write().unwrap_or_else(poisoned);
        map.extend(keys.into_iter().map(|key| (key, ts)));
        self.count.store(map.len(), Ordering::Release);
    }
    pub(crate) fn remove<'a>(&self, keys: impl Iterator<Item = (u32, &'a Slice)>) {
        let mut map = self.keys.write().unwrap_or_else(poisoned);
        for (ident, key) in keys {
            map.remove(&(ident, key.clone()));
        }
        self.count.store(map.len(), Ordering::Release);
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
    /// The log keeps its entries from `first` on.
    pub(crate) fn open(&self, ts: u64, first: u64) {
        self.entries().insert(ts, Entries { first, decided: u64::MAX });
    }
    /// Decided by the entry at `at`; with 0 it is forgotten.
    pub(crate) fn decided(&self, ts: u64, first: u64, at: u64) {
        let mut entries = self.entries();
        entries.remove(&ts);
        if at > 0 {
            entries.insert(ts, Entries { first, decided: at });
        }
    }
    fn entries(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Entries>> {
        let entries = self.entries.lock().unwrap_or_else(poisoned);
        debug_assert!(
            entries.iter().all(|(ts, e)| e.first <= *ts && *ts <= e.decided),
            "a transaction's entries, its prepare and its decision come in this order"
        );
        entries
    }
    pub(crate) fn blocks(&self, ident: u32, key: &[u8], snap: &Snapshot) -> bool {
        if self.is_empty() {
            return false;
        }
        let map = self.keys.read().unwrap_or_else(poisoned);
        map.get(&(ident, Slice::from(key))).is_some_and(|ts| snap.holds(*ts))
    }
    /// Whether a key within the bounds is prepared at a time that the snapshot sees.
    pub(crate) fn blocks_range(
        &self,
        ident: u32,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        snap: &Snapshot,
    ) -> bool {
        if self.is_empty() {
            return false;
        }
        let low = match lower {
            Bound::Included(k) => Bound::Included((ident, Slice::from(k))),
            Bound::Excluded(k) => Bound::Excluded((ident, Slice::from(k))),
            Bound::Unbounded => Bound::Included((ident, Slice::empty())),
        };
        let map = self.keys.read().unwrap_or_else(poisoned);
        map.range((low, Bound::Unbounded))
            .take_while(|((i, k), _)| {
                *i == ident
                    && match upper {
                        Bound::Included(u) => &**k <= u,
                        Bound::Excluded(u) => &**k < u,
                        Bound::Unbounded => true,
                    }
            })
            .any(|(_, ts)| snap.holds(*ts))
    }
    /// Whether any key of the ident is prepared at or below `upto`.
    pub(crate) fn any_in(&self, ident: u32, upto: u64) -> bool {
        if self.is_empty() {
            return false;
        }
        let map = self.keys.read().unwrap_or_else(poisoned);
        let low = Bound::Included((ident, Slice::empty()));
        map.range((low, Bound::Unbounded)).take_while(|((i, _), _)| *i == ident).any(|(_, ts)| *ts <= upto)
    }
    /// The oldest entry that the log must keep for recovery from `point` on (R-OPLOG-12).
    pub(crate) fn oldest(&self, point: u64) -> Option<u64> {
        let mut entries = self.entries();
        entries.retain(|_, e| e.decided > point);
        entries.values().map(|e| e.first).min()
    }
    /// The oldest entry of those undecided.
    pub(crate) fn oldest_open(&self) -> Option<u64> {
        self.entries().values().filter(|e| e.decided == u64::MAX).map(|e| e.first).min()
    }
}
