//! Room for messages that are not complete yet, over all connections.
//!
//! Anybody may connect and send 48 MB less one byte. A message that has outgrown a small piece asks for room for all of it,
//! and is read on when there is some; with the bounds on how long a message may take, room always comes back.

use pando_base::limits::UNFINISHED_BYTES_MAX;
use pando_env::sync::Notify;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[derive(Default)]
pub struct Unfinished {
    used: AtomicUsize,
    freed: Notify,
}

/// Given back when dropped.
pub struct Room {
    of: Arc<Unfinished>,
    bytes: usize,
}

impl Unfinished {
    /// Bytes that are promised.
    pub fn used(&self) -> usize {
        self.used.load(SeqCst)
    }
    fn try_take(self: &Arc<Self>, bytes: usize) -> Option<Room> {
        // One message alone always has room.
        let fits = |used: usize| {
            (used == 0 || used.saturating_add(bytes) <= UNFINISHED_BYTES_MAX)
                .then_some(used.saturating_add(bytes))
        };
        let taken = self.used.fetch_update(SeqCst, SeqCst, fits).is_ok();
        taken.then(|| Room { of: self.clone(), bytes })
    }
    /// Waits until there is room for so many bytes.
    pub async fn take(self: &Arc<Self>, bytes: usize) -> Room {
        loop {
            let seen = self.freed.version();
            if let Some(room) = self.try_take(bytes) {
                return room;
            }
            self.freed.changed(seen).await;
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.used.fetch_sub(self.bytes, SeqCst);
        self.of.freed.bump();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_bounded_and_comes_back() {
        let all: Arc<Unfinished> = Arc::default();
        let half = UNFINISHED_BYTES_MAX / 2;
        let a = all.try_take(half).unwrap();
        let b = all.try_take(half).unwrap();
        assert!(all.try_take(1).is_none());
        drop(a);
        assert!(all.try_take(half + 1).is_none() && all.try_take(half).is_some());
        drop(b);
        assert_eq!(all.used(), 0);
        assert!(all.try_take(2 * UNFINISHED_BYTES_MAX).is_some(), "a message alone");
    }
}
