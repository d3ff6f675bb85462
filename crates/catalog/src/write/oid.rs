//! ObjectIds for documents that come without `_id`: seconds, a random part per process, a counter.

use pando_base::Millis;
use pando_bson::ObjectId;
use pando_env::Rng;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct ObjectIdSource {
    process: [u8; 5],
    counter: AtomicU32,
}

impl ObjectIdSource {
    pub(crate) fn new(rng: &dyn Rng) -> ObjectIdSource {
        let mut process = [0; 5];
        rng.fill(&mut process);
        ObjectIdSource { process, counter: AtomicU32::new(rng.next_u64() as u32) }
    }
    pub(crate) fn next(&self, now: Millis) -> ObjectId {
        let mut id = [0; 12];
        id[..4].copy_from_slice(&((now / 1000) as u32).to_be_bytes());
        id[4..9].copy_from_slice(&self.process);
        let n = self.counter.fetch_add(1, Ordering::Relaxed);
        id[9..].copy_from_slice(&n.to_be_bytes()[1..]);
        ObjectId(id)
    }
}
