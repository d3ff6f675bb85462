//! The global stop for writes that `fsync: {lock: true}` sets, for file-level backups.

use pando_env::sync::Notify;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

#[derive(Default)]
pub(crate) struct FsyncLock {
    count: AtomicI64,
    changed: Notify,
}

impl FsyncLock {
    /// Adds a holder; returns how many there are.
    pub(crate) fn lock(&self) -> i64 {
        self.count.fetch_add(1, SeqCst) + 1
    }
    /// Removes a holder; `None` when there is none.
    pub(crate) fn unlock(&self) -> Option<i64> {
        let left = self.count.fetch_update(SeqCst, SeqCst, |n| (n > 0).then_some(n - 1)).ok()? - 1;
        self.changed.bump();
        Some(left)
    }
    pub(crate) fn is_locked(&self) -> bool {
        self.count.load(SeqCst) > 0
    }
    /// Resolves when writes may go on; at once when nothing is locked.
    pub(crate) async fn wait(&self) {
        while self.is_locked() {
            let seen = self.changed.version();
            if self.is_locked() {
                self.changed.changed(seen).await;
            }
        }
    }
}
