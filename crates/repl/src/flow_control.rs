//! How fast a primary may write so that a majority can follow (R-FLOW-1): the pure rule.
//!
//! ```text
//!   lag = age of the oldest write that no majority has
//!   below the threshold: the permitted rate grows       (rate + adder) · multiplier
//!   above it:            what the majority really does  sustainer's rate · fudge · decay ^ excess of the lag
//! ```
//! The sustainer is the member whose progress moves the commit point; its rate is the number of operations between
//! two commit points. Tickets are for write commands, so the rate is turned into commands by their mean size.

use pando_base::{Millis, Timestamp, limits};
use std::collections::VecDeque;

/// The parameters of the same names.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    pub target_lag_secs: i64,
    pub threshold_fraction: f64,
    pub min_per_period: i64,
    pub adder: i64,
    pub multiplier: f64,
    pub decay: f64,
    pub fudge: f64,
    pub samples_max: usize,
}

/// What the shell saw in the period that ended.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    pub micros: u64,
    pub committed: Timestamp,
    /// Age of the oldest entry beyond the commit point; 0 without one.
    pub lag_ms: Millis,
    /// Write commands that took a ticket.
    pub tickets: u64,
}

/// What `serverStatus.flowControl` shows of the last decision.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Shown {
    pub locks_per_kilo_op: f64,
    pub sustainer_rate: i64,
    pub is_lagged: bool,
    pub lagged_count: u64,
    pub lagged_micros: u64,
}

#[derive(Clone, Debug)]
pub struct FlowControl {
    /// Tickets per period.
    permitted: i64,
    /// Position of the log, and operations since the start.
    samples: VecDeque<(Timestamp, u64)>,
    committed: Timestamp,
    /// Operations up to the last decision.
    counted: u64,
    shown: Shown,
}

impl Default for FlowControl {
    fn default() -> FlowControl {
        FlowControl {
            permitted: limits::FLOW_CONTROL_TICKETS_MAX,
            samples: VecDeque::new(),
            committed: Timestamp::ZERO,
            counted: 0,
            shown: Shown::default(),
        }
    }
}

impl FlowControl {
    /// The log is at `at` after `ops` operations since the start.
    pub fn sample(&mut self, at: Timestamp, ops: u64, settings: &Settings) {
        if self.samples.back().is_none_or(|(last, _)| at > *last) {
            self.samples.push_back((at, ops));
        }
        while self.samples.len() > settings.samples_max.max(2) {
            self.samples.pop_front();
        }
    }
    pub fn shown(&self) -> Shown {
        self.shown
    }
    /// Off, or not a primary: nothing is held back and nothing remembered.
    pub fn rest(&mut self) -> i64 {
        self.samples.clear();
        self.committed = Timestamp::ZERO;
        self.shown.is_lagged = false;
        self.permitted = limits::FLOW_CONTROL_TICKETS_MAX;
        self.permitted
    }
    /// Tickets for the next period.
    pub fn next(&mut self, period: &Period, s: &Settings) -> i64 {
        let threshold_ms = (s.target_lag_secs as f64 * 1000.0 * s.threshold_fraction).max(1.0);
        let lag_ms = period.lag_ms.max(0) as f64;
        let before = std::mem::replace(&mut self.committed, period.committed);
        let sustained = self.ops_between(before, period.committed);
        let newest = self.samples.back().map_or(self.counted, |s| s.1);
        let written = newest.saturating_sub(std::mem::replace(&mut self.counted, newest));
        self.forget_below(period.committed);
        self.shown.sustainer_rate = sustained.unwrap_or(0) as i64;
        let locks_per_op = if written == 0 { 0.0 } else { period.tickets as f64 / written as f64 };
        if period.tickets > 0 && written > 0 {
            self.shown.locks_per_kilo_op = locks_per_op * 1000.0;
        }
        let was_lagged = std::mem::replace(&mut self.shown.is_lagged, lag_ms >= threshold_ms);
        let next = if self.shown.is_lagged {
            self.shown.lagged_count += u64::from(!was_lagged);
            self.shown.lagged_micros += period.micros;
            match sustained {
                Some(ops) if before > Timestamp::ZERO => {
                    let excess = (lag_ms - threshold_ms) / threshold_ms;
                    (locks_per_op * ops as f64 * s.fudge * s.decay.powf(excess)) as i64
                }
                // Nothing is known of the sustainer yet.
                _ => (period.tickets / 2) as i64,
            }
        } else {
            ((self.permitted.saturating_add(s.adder)) as f64 * s.multiplier) as i64
        };
        self.permitted = next.clamp(s.min_per_period, limits::FLOW_CONTROL_TICKETS_MAX);
        self.permitted
    }

    /// Operations up to `at`; between two samples by proportion.
    fn ops_at(&self, at: Timestamp) -> Option<f64> {
        let i = self.samples.partition_point(|(t, _)| *t <= at);
        let (t0, n0) = *self.samples.get(i.checked_sub(1)?)?;
        let Some((t1, n1)) = self.samples.get(i) else { return Some(n0 as f64) };
        let part = (at.0 - t0.0) as f64 / (t1.0 - t0.0).max(1) as f64;
        Some(n0 as f64 + (n1 - n0) as f64 * part)
    }
    fn ops_between(&self, from: Timestamp, to: Timestamp) -> Option<u64> {
        let (a, b) = (self.ops_at(from)?, self.ops_at(to)?);
        Some((b - a).max(0.0) as u64)
    }
    /// One sample at or below the commit point is enough.
    fn forget_below(&mut self, at: Timestamp) {
        while self.samples.get(1).is_some_and(|(t, _)| *t <= at) {
            self.samples.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings {
        target_lag_secs: 10,
        threshold_fraction: 0.5,
        min_per_period: 100,
        adder: 1000,
        multiplier: 1.05,
        decay: 0.5,
        fudge: 0.95,
        samples_max: 1000,
    };
    const MAX: i64 = limits::FLOW_CONTROL_TICKETS_MAX;

    /// A primary that writes `per_sec` (or what it may) while a majority follows at `majority_per_sec`.
    struct Play {
        flow: FlowControl,
        secs: u32,
        written: f64,
        followed: f64,
        /// Operations at the end of each second.
        log: Vec<f64>,
    }

    impl Play {
        fn new() -> Play {
            let mut flow = FlowControl::default();
            flow.sample(Timestamp::new(1000, 0), 0, &SETTINGS);
            Play { flow, secs: 1000, written: 0.0, followed: 0.0, log: vec![0.0] }
        }
        /// One second; what was permitted for it, and the lag at its end.
        fn second(&mut self, wanted: f64, majority: f64) -> (i64, f64) {
            let permitted = self.flow.permitted;
            let tickets = wanted.min(permitted as f64);
            self.secs += 1;
            self.written += tickets;
            self.followed = (self.followed + majority).min(self.written);
            self.log.push(self.written);
            // The second, and the part of it, in which the majority's newest entry was written.
            let at = self.log.partition_point(|n| *n < self.followed).max(1);
            let (a, b) = (self.log[at - 1], self.log[at]);
            let part = if b > a { (self.followed - a) / (b - a) } else { 1.0 };
            let time = 1000.0 + (at - 1) as f64 + part;
            let stamp = |t: f64| Timestamp::new(t as u32, (t.fract() * 4e9) as u32);
            self.flow.sample(Timestamp::new(self.secs, 0), self.written as u64, &SETTINGS);
            let period = Period {
                micros: 1_000_000,
                committed: stamp(time),
                lag_ms: ((f64::from(self.secs) - time) * 1000.0) as i64,
                tickets: tickets as u64,
            };
            self.flow.next(&period, &SETTINGS);
            (permitted, f64::from(self.secs) - time)
        }
    }

    #[test]
    fn a_majority_that_keeps_up_holds_nobody_back() {
        let mut play = Play::new();
        for _ in 0..20 {
            let (permitted, lag) = play.second(5000.0, 6000.0);
            assert_eq!(permitted, MAX);
            assert!(lag < 1.1);
        }
        assert_eq!(play.flow.shown().lagged_count, 0);
    }

    #[test]
    fn a_slow_majority_sets_the_pace_and_the_lag_stays_about_the_target() {
        let mut play = Play::new();
        let mut lags = Vec::new();
        for _ in 0..300 {
            let (_, lag) = play.second(4000.0, 2000.0);
            lags.push(lag);
        }
        let worst = lags.iter().cloned().fold(0.0, f64::max);
        let rate = play.written / 300.0;
        assert!((5.0..15.0).contains(&worst), "worst lag {worst}");
        assert!((1500.0..2200.0).contains(&rate), "written per second {rate}");
        let shown = play.flow.shown();
        assert!(shown.lagged_count > 0 && shown.lagged_micros > 0, "{shown:?}");
        assert!((990.0..1010.0).contains(&shown.locks_per_kilo_op), "{shown:?}");
    }

    #[test]
    fn a_standing_majority_leaves_the_least_and_a_healed_one_frees_the_rate_again() {
        let mut play = Play::new();
        for _ in 0..3 {
            play.second(1000.0, 1000.0);
        }
        for _ in 0..30 {
            play.second(1000.0, 0.0);
        }
        assert_eq!(play.flow.permitted, 100);
        assert!(play.flow.shown().is_lagged);
        let mut freed = 0;
        while play.flow.permitted < 5000 {
            play.second(1000.0, 50_000.0);
            freed += 1;
            assert!(freed < 20, "{:?}", play.flow);
        }
        assert!(!play.flow.shown().is_lagged);
        assert_eq!(play.flow.rest(), MAX);
    }
}
