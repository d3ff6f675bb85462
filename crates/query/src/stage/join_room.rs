//! What one join holds, counted with all other joins of its operation: pipelines within pipelines hold theirs together.

use crate::ctx::Joined;
use pando_base::limits::{LOOKUP_CACHE_BYTES_MAX, LOOKUP_OUTPUT_BYTES_MAX};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Growth that others need not know of.
const STEP: usize = 64 << 10;

pub(super) struct JoinRoom {
    all: Arc<Joined>,
    cached: usize,
    matched: usize,
}

impl JoinRoom {
    pub(super) fn new(all: Arc<Joined>) -> JoinRoom {
        JoinRoom { all, cached: 0, matched: 0 }
    }
    /// This join remembers so much of its foreign collection; false when it may not.
    pub(super) fn cache(&mut self, bytes: usize) -> bool {
        hold(&self.all.cached, &mut self.cached, bytes, LOOKUP_CACHE_BYTES_MAX)
    }
    /// The matches of its current document take so much; false when that is too much.
    pub(super) fn matched(&mut self, bytes: usize) -> bool {
        hold(&self.all.matched, &mut self.matched, bytes, LOOKUP_OUTPUT_BYTES_MAX)
    }
}

fn hold(all: &AtomicUsize, mine: &mut usize, bytes: usize, max: usize) -> bool {
    if bytes < *mine {
        all.fetch_sub(*mine - bytes, Ordering::Relaxed);
        *mine = bytes;
        return true;
    }
    let more = bytes - *mine;
    if more < STEP {
        return true;
    }
    *mine = bytes;
    all.fetch_add(more, Ordering::Relaxed) + more <= max
}

impl Drop for JoinRoom {
    fn drop(&mut self) {
        self.cache(0);
        self.matched(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_hold_their_documents_together() {
        let all = Arc::new(Joined::default());
        let (mut a, mut b) = (JoinRoom::new(all.clone()), JoinRoom::new(all.clone()));
        assert!(a.cache(LOOKUP_CACHE_BYTES_MAX) && a.matched(LOOKUP_OUTPUT_BYTES_MAX / 2));
        assert!(b.matched(LOOKUP_OUTPUT_BYTES_MAX / 2));
        assert!(!b.cache(STEP) && !b.matched(LOOKUP_OUTPUT_BYTES_MAX));
        drop(b);
        assert!(a.matched(LOOKUP_OUTPUT_BYTES_MAX));
        drop(a);
        assert_eq!((all.cached.load(Ordering::Relaxed), all.matched.load(Ordering::Relaxed)), (0, 0));
    }
}
