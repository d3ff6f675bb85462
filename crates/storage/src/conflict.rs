//! Who is writing which key right now: the first updater wins.
//!
//! Keys are known by a 64-bit hash. Two keys with one hash merely make a conflict that a retry resolves, and
//! the seed keeps anyone from choosing such keys.

use pando_base::HashMap;
use pando_base::panics::poisoned;
use std::sync::Mutex;

const SHARDS: usize = 64;

pub(crate) struct Conflicts {
    seed: u64,
    shards: Vec<Mutex<HashMap<u64, u64>>>,
}

impl Conflicts {
    pub(crate) fn new(seed: u64) -> Conflicts {
        Conflicts { seed: seed | 1, shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
    pub(crate) fn hash(&self, ident: u32, key: &[u8]) -> u64 {
        let mut h = self.seed ^ u64::from(ident).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut chunks = key.chunks_exact(8);
        let mut mix = |word: u64| {
            let wide = u128::from(h ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93_a076_1d64_78bd_642f);
            h = (wide as u64) ^ ((wide >> 64) as u64);
        };
        for chunk in &mut chunks {
            mix(u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
        }
        let mut last = [0u8; 8];
        let rest = chunks.remainder();
        last[..rest.len()].copy_from_slice(rest);
        mix(u64::from_le_bytes(last));
        mix(key.len() as u64);
        h
    }
    fn shard(&self, hash: u64) -> std::sync::MutexGuard<'_, HashMap<u64, u64>> {
        self.shards[(hash % SHARDS as u64) as usize].lock().unwrap_or_else(poisoned)
    }
    /// `Some(true)`: taken now; `Some(false)`: already ours; `None`: someone else's.
    pub(crate) fn take(&self, hash: u64, txn: u64) -> Option<bool> {
        match self.shard(hash).entry(hash) {
            std::collections::hash_map::Entry::Vacant(e) => {
                e.insert(txn);
                Some(true)
            }
            std::collections::hash_map::Entry::Occupied(e) => (*e.get() == txn).then_some(false),
        }
    }
    pub(crate) fn release(&self, hashes: &[u64]) {
        for hash in hashes {
            self.shard(*hash).remove(hash);
        }
    }
}
