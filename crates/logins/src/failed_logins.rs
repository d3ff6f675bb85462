//! Whoever fails to log in again and again is answered later each time.
//!
//! ```text
//!   failures from one address    1 … FREE    then
//!   pause before the next        none        100 ms, 200, 400 … at most a second, until nothing has failed for a minute
//! ```
//! A few a minute of them are lines of the log.
//!
//! Failures are counted by address, so whoever guesses slows down its neighbours behind the same address and nobody else. The pause
//! stands before a login begins; who is logged in is not concerned.

use pando_base::HashMap;
use pando_base::limits::{
    LOGIN_FAILURES_ADDRESSES_MAX, LOGIN_FAILURES_FORGOTTEN_SECS, LOGIN_FAILURES_FREE,
    LOGIN_FAILURES_LOGGED_A_MINUTE_MAX, LOGIN_PAUSE_MS_MAX, LOGIN_PAUSE_MS_MIN,
};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Clone, Copy, Default)]
struct Failures {
    count: u32,
    /// Monotonic.
    last: Duration,
    /// When the minute began in which `logged` lines were written.
    minute: Duration,
    logged: u32,
    /// Failures since the last line.
    left_out: u32,
}

impl Failures {
    /// Whether the log is told of this one, and then how many it was not told of before.
    fn log(&mut self, now: Duration) -> Option<u32> {
        if self.logged == 0 || now.saturating_sub(self.minute) >= Duration::from_secs(60) {
            (self.minute, self.logged) = (now, 0);
        }
        if self.logged >= LOGIN_FAILURES_LOGGED_A_MINUTE_MAX {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Of all addresses.
#[derive(Default)]
pub(crate) struct FailedLogins(Mutex<HashMap<IpAddr, Failures>>);

impl FailedLogins {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Failures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Counts a failure. Whether it is to be logged, and then how many were not before.
    pub(crate) fn note(&self, from: IpAddr, now: Duration) -> Option<u32> {
        let mut all = self.lock();
        if all.len() >= LOGIN_FAILURES_ADDRESSES_MAX && !all.contains_key(&from) {
            all.retain(|_, f| !is_forgotten(f, now));
            if all.len() >= LOGIN_FAILURES_ADDRESSES_MAX {
                all.clear();
            }
        }
        let failures = all.entry(from).or_default();
        if is_forgotten(failures, now) {
            failures.count = 0;
        }
        failures.count = failures.count.saturating_add(1);
        failures.last = now;
        failures.log(now)
    }
    /// How long the next login from there waits.
    pub(crate) fn pause(&self, from: IpAddr, now: Duration) -> Duration {
        let all = self.lock();
        let Some(failures) = all.get(&from).filter(|f| !is_forgotten(f, now)) else { return Duration::ZERO };
        let Some(beyond) = failures.count.checked_sub(LOGIN_FAILURES_FREE).filter(|n| *n > 0) else {
            return Duration::ZERO;
        };
        let ms = LOGIN_PAUSE_MS_MIN << (beyond - 1).min(16);
        Duration::from_millis(ms.min(LOGIN_PAUSE_MS_MAX))
    }
}

fn is_forgotten(f: &Failures, now: Duration) -> bool {
    now.saturating_sub(f.last) > Duration::from_secs(LOGIN_FAILURES_FORGOTTEN_SECS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn at(secs: u64) -> Duration {
        Duration::from_secs(1000 + secs)
    }

    #[test]
    fn pauses_grow_to_a_second_and_are_forgotten() {
        let failed = FailedLogins::default();
        let mut pauses = Vec::new();
        for _ in 0..LOGIN_FAILURES_FREE + 6 {
            failed.note(HERE, at(0));
            pauses.push(failed.pause(HERE, at(0)).as_millis());
        }
        let free = LOGIN_FAILURES_FREE as usize;
        assert!(pauses[..free].iter().all(|ms| *ms == 0));
        assert_eq!(pauses[free..], [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(failed.pause("10.0.0.1".parse().unwrap(), at(0)), Duration::ZERO);
        assert_eq!(failed.pause(HERE, at(LOGIN_FAILURES_FORGOTTEN_SECS + 1)), Duration::ZERO);
        failed.note(HERE, at(LOGIN_FAILURES_FORGOTTEN_SECS + 1));
        assert_eq!(failed.pause(HERE, at(LOGIN_FAILURES_FORGOTTEN_SECS + 1)), Duration::ZERO);
    }

    #[test]
    fn so_many_lines_a_minute_and_what_was_left_out_is_told() {
        let failed = FailedLogins::default();
        let max = LOGIN_FAILURES_LOGGED_A_MINUTE_MAX;
        let told: Vec<_> = (0..max + 7).map(|_| failed.note(HERE, at(0))).collect();
        assert!(told[..max as usize].iter().all(|t| *t == Some(0)), "{told:?}");
        assert!(told[max as usize..].iter().all(Option::is_none), "{told:?}");
        assert_eq!(failed.note("10.0.0.1".parse().unwrap(), at(0)), Some(0));
        assert_eq!(failed.note(HERE, at(59)), None);
        assert_eq!(failed.note(HERE, at(60)), Some(8));
        assert_eq!(failed.note(HERE, at(61)), Some(0));
    }

    #[test]
    fn addresses_are_bounded() {
        let failed = FailedLogins::default();
        for n in 0..=LOGIN_FAILURES_ADDRESSES_MAX as u32 {
            failed.note(IpAddr::V4(n.into()), at(0));
        }
        assert!(failed.lock().len() <= LOGIN_FAILURES_ADDRESSES_MAX);
    }
}
