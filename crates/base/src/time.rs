//! Timestamps, terms and opTimes (R-TIME-1..5).

use crate::limits;
use std::fmt;

/// Milliseconds since the Unix epoch (wall clock) or a duration, as the name at the use site says.
pub type Millis = i64;

/// An election term. `-1` means "uninitialised" (R-TIME-1, R-TIME-4).
pub type Term = i64;

/// Cluster time: high 32 bits Unix seconds, low 32 bits a counter from 1 (R-TIME-2).
///
/// Its `u64` form orders the same way, so storage uses it as the commit timestamp; 0 means "untimestamped".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    pub const ZERO: Timestamp = Timestamp(0);
    pub const MAX: Timestamp = Timestamp(u64::MAX);

    pub const fn new(secs: u32, inc: u32) -> Self {
        Timestamp(((secs as u64) << 32) | inc as u64)
    }
    pub const fn secs(self) -> u32 {
        (self.0 >> 32) as u32
    }
    pub const fn inc(self) -> u32 {
        self.0 as u32
    }
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({}, {})", self.secs(), self.inc())
    }
}
impl fmt::Display for OpTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ ts: {}, t: {} }}", self.ts, self.t)
    }
}
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A position in the replicated log: timestamp and the term it was written in (R-TIME-1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct OpTime {
    pub ts: Timestamp,
    pub t: Term,
}

impl OpTime {
    pub const NULL: OpTime = OpTime { ts: Timestamp::ZERO, t: -1 };
    pub const fn new(ts: Timestamp, t: Term) -> Self {
        OpTime { ts, t }
    }
    pub const fn is_null(self) -> bool {
        self.ts.is_zero()
    }
}

/// Whether a member whose term is `own` may believe another that names `term`. Terms grow by one with each election: one
/// far above is a mistake or a forgery, and whoever took it over could soon not count any further.
pub const fn is_credible_term(term: Term, own: Term) -> bool {
    term <= limits::TERM_MAX && term <= own.saturating_add(limits::TERM_LEAP_MAX)
}

impl PartialOrd for OpTime {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for OpTime {
    /// Term first, then timestamp; when either term is uninitialised only timestamps count.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        if self.t != -1 && other.t != -1 && self.t != other.t {
            return self.t.cmp(&other.t);
        }
        self.ts.cmp(&other.ts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_decides_before_timestamp_unless_uninitialised() {
        let a = OpTime::new(Timestamp::new(10, 1), 2);
        let b = OpTime::new(Timestamp::new(20, 1), 1);
        assert!(a > b);
        let c = OpTime::new(Timestamp::new(20, 1), -1);
        assert!(a < c);
    }

    #[test]
    fn terms_far_above_the_own_are_not_believed() {
        assert!(
            is_credible_term(-1, 7) && is_credible_term(8, 7) && is_credible_term(limits::TERM_LEAP_MAX, 0)
        );
        assert!(!is_credible_term(limits::TERM_LEAP_MAX + 1, 0));
        assert!(!is_credible_term(Term::MAX, 0) && !is_credible_term(Term::MAX, Term::MAX));
    }

    #[test]
    fn timestamp_orders_by_seconds_then_increment() {
        assert!(Timestamp::new(1, 9) < Timestamp::new(2, 1));
        assert!(Timestamp::new(2, 1) < Timestamp::new(2, 2));
        assert_eq!(Timestamp::new(7, 3).secs(), 7);
        assert_eq!(Timestamp::new(7, 3).inc(), 3);
    }
}
