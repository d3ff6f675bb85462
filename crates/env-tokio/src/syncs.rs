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

fn running() -> MutexGuard<'static, Running> {
    // Nothing in here is ever half done.
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the oldest sync has been under way; `None` when there is none.
pub fn longest() -> Option<Duration> {
    running().began.first_key_value().map(|(_, began)| began.elapsed())
}

/// Counts as under way until it is dropped.
pub(crate) struct Sync(u64);

pub(crate) fn begin() -> Sync {
    let mut all = running();
    let n = all.next;
    all.next += 1;
    all.began.insert(n, Instant::now());
    Sync(n)
}

impl Drop for Sync {
    fn drop(&mut self) {
        running().began.remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_sync_counts_until_it_comes_back() {
        assert_eq!(longest(), None);
        let old = begin();
        std::thread::sleep(Duration::from_millis(30));
        let new = begin();
        assert!(longest().is_some_and(|d| d >= Duration::from_millis(30)));
        drop(old);
        assert!(longest().is_some_and(|d| d < Duration::from_millis(30)));
        drop(new);
        assert_eq!(longest(), None);
    }
}
