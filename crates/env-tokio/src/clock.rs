//! Time from the kernel. Both clocks are read through the vDSO, without a system call.

use pando_base::Millis;
use pando_env::{BoxFuture, Clock};
use std::time::{Duration, Instant};

pub struct RealClock {
    start: Instant,
}

impl RealClock {
    pub fn new() -> RealClock {
        RealClock { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        RealClock::new()
    }
}

impl Clock for RealClock {
    #[inline]
    fn mono(&self) -> Duration {
        self.start.elapsed()
    }
    /// Coarse: moves with the scheduler tick (1 to 4 ms), a quarter of the price.
    #[inline]
    fn wall_ms(&self) -> Millis {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        t.tv_sec * 1000 + t.tv_nsec / 1_000_000
    }
    fn sleep(&self, d: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(d))
    }
}
