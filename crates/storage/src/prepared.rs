//! Keys written by prepared transactions: undecided, so a reader at or above the prepare timestamp cannot know
//! what it should see.

use lsm_tree::Slice;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

#[derive(Default)]
pub(crate) struct Prepares {
    /// Lets readers pass without the lock when nothing is prepared.
    count: AtomicUsize,
    keys: RwLock<BTreeMap<(u32, Slice), u64>>,
}

impl Prepares {
    pub(crate) fn add<'a>(&self, keys: impl Iterator<Item = (u32, &'a Slice)>, ts: u64) {
        let mut map = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        for (ident, key) in keys {
            map.insert((ident, key.clone()), ts);
        }
        self.count.store(map.len(), Ordering::Release);
    }
    pub(crate) fn remove<'a>(&self, keys: impl Iterator<Item = (u32, &'a Slice)>) {
        let mut map = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        for (ident, key) in keys {
            map.remove(&(ident, key.clone()));
        }
        self.count.store(map.len(), Ordering::Release);
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
    pub(crate) fn blocks(&self, ident: u32, key: &[u8], read: u64) -> bool {
        if self.is_empty() {
            return false;
        }
        let map = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        map.get(&(ident, Slice::from(key))).is_some_and(|ts| *ts <= read)
    }
    /// Whether a key within the bounds is prepared at or below `read`.
    pub(crate) fn blocks_range(
        &self,
        ident: u32,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        read: u64,
    ) -> bool {
        if self.is_empty() {
            return false;
        }
        let low = match lower {
            Bound::Included(k) => Bound::Included((ident, Slice::from(k))),
            Bound::Excluded(k) => Bound::Excluded((ident, Slice::from(k))),
            Bound::Unbounded => Bound::Included((ident, Slice::empty())),
        };
        let map = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        map.range((low, Bound::Unbounded))
            .take_while(|((i, k), _)| {
                *i == ident
                    && match upper {
                        Bound::Included(u) => &**k <= u,
                        Bound::Excluded(u) => &**k < u,
                        Bound::Unbounded => true,
                    }
            })
            .any(|(_, ts)| *ts <= read)
    }
    /// The oldest prepare timestamp: the log must keep its entry (R-OPLOG-12).
    pub(crate) fn oldest(&self) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        self.keys.read().unwrap_or_else(PoisonError::into_inner).values().min().copied()
    }
}
