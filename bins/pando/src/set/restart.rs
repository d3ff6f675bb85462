//! When a member that ended is started again: soon after the first time, ever later if it keeps ending.

use pando_base::limits;
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(limits::SET_RESTART_MS_MIN);
const LAST: Duration = Duration::from_millis(limits::SET_RESTART_MS_MAX);
/// A member that ran for so long had a new reason to end.
const FORGIVEN: Duration = Duration::from_millis(limits::SET_RESTART_FORGIVEN_MS);

struct One {
    started: Duration,
    pause: Duration,
    due: Option<Duration>,
}

/// One entry per member; times are those of a monotonic clock.
pub(crate) struct Restarts(Vec<One>);

impl Restarts {
    pub(crate) fn new(members: usize, now: Duration) -> Restarts {
        Restarts((0..members).map(|_| One { started: now, pause: FIRST, due: None }).collect())
    }
    /// Member `i` ended or could not be started; how long until the next try.
    pub(crate) fn ended(&mut self, i: usize, now: Duration) -> Duration {
        let one = &mut self.0[i];
        if now.saturating_sub(one.started) >= FORGIVEN {
            one.pause = FIRST;
        }
        let pause = one.pause;
        one.pause = (pause * 2).min(LAST);
        one.due = Some(now + pause);
        pause
    }
    /// True once, when it is time to start member `i`.
    pub(crate) fn is_due(&mut self, i: usize, now: Duration) -> bool {
        let one = &mut self.0[i];
        let due = one.due.is_some_and(|at| now >= at);
        if due {
            (one.due, one.started) = (None, now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_keeps_ending_waits_longer_and_one_that_ran_well_does_not() {
        let mut r = Restarts::new(2, Duration::ZERO);
        let mut now = Duration::from_secs(1);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let pause = r.ended(1, now);
            assert!(!r.is_due(1, now) && !r.is_due(0, now + LAST));
            now += pause;
            assert!(r.is_due(1, now) && !r.is_due(1, now), "once");
            pauses.push(pause);
        }
        assert_eq!(pauses[..3], [FIRST, FIRST * 2, FIRST * 4]);
        assert_eq!(pauses.last(), Some(&LAST));
        assert_eq!(r.ended(1, now + FORGIVEN), FIRST);
    }
}
