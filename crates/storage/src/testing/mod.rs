//! A small world for tests: a clock that tests move, seeded randomness, a disk that can fail, no network.

mod faulty_disk;
mod real_disk;

pub use faulty_disk::FaultyDisk;
pub use real_disk::RealDisk;

use pando_base::Result;
use pando_encryption::store::Wanted;
use pando_encryption::{KeyFiles, Keys, MasterKey};
use pando_env::{BoxFuture, Clock, Disk, Env, Listener, Log, Net, Rng, Spawn, Stream};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// A clock that stands still until told.
#[derive(Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn set_ms(&self, ms: i64) {
        self.0.store(ms, Ordering::Relaxed);
    }
    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}
impl Clock for ManualClock {
    fn mono(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed).unsigned_abs())
    }
    fn wall_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
    fn sleep(&self, _d: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// xorshift: a seed gives one sequence.
pub struct SeededRng(AtomicU64);

impl SeededRng {
    pub fn new(seed: u64) -> SeededRng {
        SeededRng(AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    }
    /// Uniform below `n` (n > 0).
    pub fn below(&self, n: u64) -> u64 {
        self.next_u64() % n
    }
}
impl Rng for SeededRng {
    fn next_u64(&self) -> u64 {
        let step = |x: u64| {
            let x = x ^ (x << 13);
            let x = x ^ (x >> 7);
            x ^ (x << 17)
        };
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |x| Some(step(x)));
        step(before.unwrap_or(1)).wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

struct NoNet;

impl Net for NoNet {
    fn listen(&self, _addr: String) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }
    fn connect(&self, _addr: String) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }
}

/// Runs offloaded work in place and spawned tasks never.
struct InPlace;

impl Spawn for InPlace {
    fn spawn(&self, _name: &'static str, _task: BoxFuture<'static, ()>) {}
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        work();
        Box::pin(std::future::ready(()))
    }
    fn yield_now(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A world on `disk`; the clock starts at 1000 s.
pub fn env_on(disk: Arc<dyn Disk>, seed: u64) -> (Env, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    clock.set_ms(1_000_000);
    let env = Env {
        clock: clock.clone(),
        rng: Arc::new(SeededRng::new(seed)),
        disk,
        net: Arc::new(NoNet),
        tasks: Arc::new(InPlace),
        log: Log::none(),
    };
    (env, clock)
}

/// Keys of the folder on `disk`, which the first call makes one that is encrypted. Draws differ from call to call.
pub fn keys_of(disk: &dyn Disk) -> Result<Arc<Keys>> {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    let masters = KeyFiles { path: "key".to_owned(), key: MasterKey::new([42; 32]), replaced: None };
    let seed = CALLS.fetch_add(1, Ordering::Relaxed);
    let rng = Arc::new(SeededRng::new(seed));
    pando_encryption::store::open(disk, &masters, rng, Wanted::default()).map(|opened| opened.keys)
}
/// Keys of a folder of nobody's.
pub fn encryption_keys(seed: u64) -> Arc<Keys> {
    keys_of(&FaultyDisk::new(seed)).expect("a key store")
}

/// A world on a fresh fault-free disk in memory.
pub fn env() -> Env {
    env_on(Arc::new(FaultyDisk::new(1)), 1).0
}
