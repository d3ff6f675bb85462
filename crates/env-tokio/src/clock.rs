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
    /// The fine clock: what is stored as "now" must not lie before the moment that a client saw on its own clock.
    #[inline]
    fn wall_ms(&self) -> Millis {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        t.tv_sec * 1000 + t.tv_nsec / 1_000_000
    }
    fn sleep(&self, d: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(d))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn the_wall_clock_lags_by_less_than_a_millisecond() {
        let clock = RealClock::new();
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as i64;
        for _ in 0..20_000 {
            let before = now();
            let told = clock.wall_ms();
            assert!((before..=now()).contains(&told), "{told} is not between {before} and now");
        }
    }
}
