//! What a reader may see.
//!
//! A snapshot is the highest committed timestamp at its start plus the ranges of timestamps below it that were
//! reserved but not yet closed. A row version is seen iff its timestamp is at or below the first and in none of
//! the second. So a writer reads its own committed writes at once, without waiting for older holes to close,
//! and rows that a commit has put in place before its slot closes stay invisible.

use crate::late::Late;
use pando_base::Timestamp;

/// Where a transaction reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadAt {
    /// Everything committed so far, minus what is still in flight.
    Latest,
    /// The highest timestamp below which nothing is in flight (R-OPLOG-10).
    AllDurable,
    /// Exactly this timestamp; it should be at or below `all_durable`. Below `oldest`: `SnapshotTooOld`.
    At(Timestamp),
    /// Every row that is in place, whatever its timestamp: for recovery and for applying replicated entries.
    Applied,
}

/// What a read does on a key that a prepared transaction has written at or below the read timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnPrepared {
    /// Fail with `PreparedTransactionInProgress`: wait for [`crate::Storage::prepare_changes`] and retry.
    Conflict,
    /// Read as if the prepared transaction did not exist.
    #[default]
    Ignore,
}

#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) read: u64,
    /// Ascending, disjoint, inclusive ranges at or below `read`.
    pub(crate) in_flight: Box<[(u64, u64)]>,
    /// Smallest timestamp that this snapshot needs versions at.
    pub(crate) pin: u64,
    pub(crate) on_prepared: OnPrepared,
    pub(crate) late: Late,
}

impl Snapshot {
    #[inline]
    pub(crate) fn sees(&self, ts: u64) -> bool {
        self.holds(ts) || (!matches!(self.late, Late::Nothing) && self.sees_late(ts))
    }
    /// At or below the read timestamp, and not in flight.
    #[inline]
    pub(crate) fn holds(&self, ts: u64) -> bool {
        ts <= self.read && (self.in_flight.is_empty() || !self.is_in_flight(ts))
    }
    #[cold]
    fn sees_late(&self, ts: u64) -> bool {
        match &self.late {
            Late::Nothing => false,
            Late::These(entries) => entries.contains(&ts),
            Late::All(all) => all.shows(ts, self),
        }
    }
    fn is_in_flight(&self, ts: u64) -> bool {
        let at = self.in_flight.partition_point(|(_, last)| *last < ts);
        self.in_flight.get(at).is_some_and(|(first, _)| *first <= ts)
    }
    /// True when everything up to `ts` is seen.
    pub(crate) fn sees_all_up_to(&self, ts: u64) -> bool {
        ts <= self.read && self.in_flight.first().is_none_or(|(first, _)| *first > ts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_flight_ranges_are_unseen_and_their_neighbours_are_seen() {
        let s = Snapshot { read: 20, in_flight: Box::new([(5, 5), (8, 10)]), ..Snapshot::default() };
        let unseen: Vec<u64> = (1..=22).filter(|t| !s.sees(*t)).collect();
        assert_eq!(unseen, [5, 8, 9, 10, 21, 22]);
        assert!(s.sees_all_up_to(4) && !s.sees_all_up_to(5));
    }
}
