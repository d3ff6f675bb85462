//! Syncs of files and folders that have begun and not come back.
//!
//! A disk that fails says so; one that hangs says nothing. Whoever runs the process asks now and then how long the oldest
//! sync has been under way, from a thread that needs neither the disk nor the runtime.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static RUNNING: Mutex<Running> = Mutex::new(Running { next: 0, began: BTreeMap::new() });

struct Running {
    next: u64,
    /// In the order in which they began.
    began: BTreeMap<u64, Instant>,
}

impl Running {
    fn longest(&self) -> Option<Duration> {
        self.began.first_key_value().map(|(_, began)| began.elapsed())
    }
    fn begin(&mut self) -> u64 {
        let n = self.next;
        self.next += 1;
        self.began.insert(n, Instant::now());
        n
    }
    fn end(&mut self, n: u64) {
        self.began.remove(&n);
    }
}

fn running() -> MutexGuard<'static, Running> {
    // Nothing in here is ever half done.
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the oldest sync has been under way; `None` when there is none.
pub fn longest() -> Option<Duration> {
    running().longest()
}

/// Counts as under way until it is dropped.
pub(crate) struct Sync(u64);

pub(crate) fn begin() -> Sync {
    Sync(running().begin())
}

impl Drop for Sync {
    fn drop(&mut self) {
        running().end(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_sync_counts_until_it_comes_back() {
        // Not the process's own: other tests have syncs under way.
        let mut all = Running { next: 0, began: BTreeMap::new() };
        assert_eq!(all.longest(), None);
        let old = all.begin();
        std::thread::sleep(Duration::from_millis(30));
        let new = all.begin();
        let (both, before) = (all.longest(), all.began[&new]);
        assert!(both.is_some_and(|d| d >= Duration::from_millis(30)));
        all.end(old);
        assert!(all.longest().is_some_and(|d| d <= before.elapsed()));
        all.end(new);
        assert_eq!(all.longest(), None);
    }
}
