//! Members' commands that were refused, and how often the log says so.
//!
//! Anybody who reaches the port can be refused as often as he likes, so the log has a line for each address and minute at most,
//! which says how many have gone without one since. Addresses beyond the table's bound share one line.

use pando_base::limits::{REFUSED_MEMBERS_LINE_MS, REFUSED_MEMBERS_TOLD_MAX};
use pando_metrics::{Collector, Counter, Source};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct RefusedMembers {
    refused: Counter,
    /// Those without a line of their own in the log.
    untold: Counter,
    /// By address; `None` are those for which there is no room.
    told: Mutex<BTreeMap<Option<IpAddr>, Told>>,
}

struct Told {
    at: Duration,
    untold: u64,
}

/// A line is due.
pub(super) struct Line {
    /// `None` where it stands for several addresses.
    pub(super) of: Option<IpAddr>,
    /// Refused since the line before.
    pub(super) untold: u64,
}

impl RefusedMembers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Option<IpAddr>, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(super) fn note(&self, peer: IpAddr, now: Duration) -> Option<Line> {
        self.refused.inc();
        let is_over = |t: &Told| now.saturating_sub(t.at) >= Duration::from_millis(REFUSED_MEMBERS_LINE_MS);
        let mut told = self.lock();
        if !told.contains_key(&Some(peer)) && told.len() >= REFUSED_MEMBERS_TOLD_MAX {
            told.retain(|_, t| !is_over(t));
        }
        let has_room = told.len() < REFUSED_MEMBERS_TOLD_MAX || told.contains_key(&Some(peer));
        let of = has_room.then_some(peer);
        let untold = match told.get_mut(&of) {
            Some(t) if !is_over(t) => {
                t.untold += 1;
                self.untold.inc();
                return None;
            }
            Some(t) => t.untold,
            None => 0,
        };
        told.insert(of, Told { at: now, untold: 0 });
        Some(Line { of, untold })
    }
}

/// `serverStatus.metrics.repl.refusedMembers`.
impl Source for RefusedMembers {
    fn collect(&self, to: &mut Collector<'_>) {
        to.counter("count", self.refused.get(), "commands", "Members' commands that were refused")
            .counter(
                "untold",
                self.untold.get(),
                "commands",
                "Those of them without a line of their own in the log",
            )
            .gauge(
                "addresses",
                self.lock().len(),
                "addresses",
                "Addresses whose refusals are in the log lately",
            );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: usize) -> IpAddr {
        IpAddr::from((n as u32).to_be_bytes())
    }
    fn untold(of: &RefusedMembers, n: usize, secs: u64) -> Option<u64> {
        of.note(address(n), Duration::from_secs(secs)).map(|line| line.untold)
    }

    #[test]
    fn an_address_has_one_line_a_minute_that_counts_those_without() {
        let refused = RefusedMembers::default();
        assert_eq!(untold(&refused, 1, 0), Some(0));
        assert!((1..60).all(|at| untold(&refused, 1, at).is_none()));
        assert_eq!(untold(&refused, 2, 30), Some(0), "another address");
        assert_eq!(untold(&refused, 1, 60), Some(59));
        assert_eq!((refused.refused.get(), refused.untold.get()), (62, 59));
    }

    #[test]
    fn addresses_beyond_the_bound_share_a_line() {
        let refused = RefusedMembers::default();
        for n in 0..REFUSED_MEMBERS_TOLD_MAX {
            assert_eq!(untold(&refused, n, 0), Some(0));
        }
        let shared = |n, secs| refused.note(address(n), Duration::from_secs(secs));
        let line = shared(10_000, 1).unwrap();
        assert_eq!((line.of, line.untold), (None, 0));
        assert!((10_001..10_500).all(|n| shared(n, 2).is_none()));
        assert!(refused.lock().len() <= REFUSED_MEMBERS_TOLD_MAX + 1);
        // A minute later there is room again.
        assert_eq!(shared(10_000, 61).unwrap().of, Some(address(10_000)));
        assert_eq!(refused.lock().len(), 1);
    }
}
