//! Randomness: a keyed hash of a counter for numbers, the kernel's generator for secrets.

use pando_env::Rng;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// `next_u64` is SipHash of a counter under a random key (unpredictable to clients, ~10 ns); `fill` asks the
/// kernel.
pub struct RealRng {
    key: RandomState,
    counter: AtomicU64,
}

impl RealRng {
    pub fn new() -> io::Result<RealRng> {
        let mut seed = [0; 8];
        os_random(&mut seed)?;
        Ok(RealRng { key: RandomState::new(), counter: AtomicU64::new(u64::from_le_bytes(seed)) })
    }
}

fn os_random(mut buf: &mut [u8]) -> io::Result<()> {
    while !buf.is_empty() {
        let n = rustix::rand::getrandom(&mut *buf, rustix::rand::GetRandomFlags::empty())?;
        buf = &mut buf[n..];
    }
    Ok(())
}

impl Rng for RealRng {
    fn next_u64(&self) -> u64 {
        let mut hasher = self.key.build_hasher();
        hasher.write_u64(self.counter.fetch_add(1, Relaxed));
        hasher.finish()
    }
    fn fill(&self, buf: &mut [u8]) {
        // It has given some when this was made. Keys are made of these: nothing weaker takes their place.
        os_random(buf).expect("the kernel's generator gives bytes");
    }
}
