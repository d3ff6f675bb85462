//! What one join holds, counted with all other joins of its operation: pipelines within pipelines hold theirs together.

use crate::ctx::{Joined, Memory, QueryCtx};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Growth that others need not know of.
const STEP: usize = 64 << 10;

pub(super) struct JoinRoom {
    all: Arc<Joined>,
    memory: Memory,
    cached: usize,
    matched: usize,
}

impl JoinRoom {
    pub(super) fn new(ctx: &QueryCtx) -> JoinRoom {
        JoinRoom { all: ctx.joined.clone(), memory: ctx.memory, cached: 0, matched: 0 }
    }
    /// This join remembers so much of its foreign collection; false when it may not.
    pub(super) fn cache(&mut self, bytes: usize) -> bool {
        hold(&self.all.cached, &mut self.cached, bytes, self.memory.join_cache)
    }
    /// The matches of its current document take so much; false when that is too much.
    pub(super) fn matched(&mut self, bytes: usize) -> bool {
        hold(&self.all.matched, &mut self.matched, bytes, self.memory.join)
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
        let ctx = QueryCtx::default();
        let (all, Memory { join, join_cache, .. }) = (&ctx.joined, ctx.memory);
        let (mut a, mut b) = (JoinRoom::new(&ctx), JoinRoom::new(&ctx));
        assert!(a.cache(join_cache) && a.matched(join / 2));
        assert!(b.matched(join / 2));
        assert!(!b.cache(STEP) && !b.matched(join));
        drop(b);
        assert!(a.matched(join));
        drop(a);
        assert_eq!((all.cached.load(Ordering::Relaxed), all.matched.load(Ordering::Relaxed)), (0, 0));
    }
}
