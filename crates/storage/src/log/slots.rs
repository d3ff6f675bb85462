//! Reserved places in the log, their holes, and what readers may see because of them.
//!
//! A writer reserves a group of consecutive timestamps before it commits. Until the whole group is closed its
//! timestamps are in flight: no later entry becomes visible to oplog readers, and rows of the group are seen by
//! no snapshot. Closing is filling a slot with an entry, or dropping it empty (R-OPLOG-10, R-OPLOG-11).

use crate::bytes::Bytes;
use crate::snapshot::Snapshot;
use std::collections::{BTreeMap, VecDeque};

struct Group {
    first: u64,
    n: u32,
    open: u32,
    /// Filled entries, in slot order; those dropped empty are missing.
    entries: Vec<(u32, Bytes)>,
}

impl Group {
    fn last(&self) -> u64 {
        self.first + u64::from(self.n) - 1
    }
}

/// The heart of the log: everything that changes at a reservation or a commit, under one short lock.
#[derive(Default)]
pub(crate) struct Slotting {
    groups: VecDeque<Group>,
    /// Number of the group at the front of `groups`.
    base: u64,
    /// Highest timestamp handed out or seen.
    pub(crate) last_reserved: u64,
    /// Highest committed timestamp: where a new snapshot reads.
    pub(crate) committed: u64,
    /// Highest timestamp with no open slot at or below it.
    pub(crate) all_durable: u64,
    /// Newest entry's timestamp within the hole-free prefix.
    pub(crate) last: u64,
    /// Newest entry that oplog readers may see.
    pub(crate) visible: u64,
    /// Entries of the hole-free prefix that readers find in memory, oldest first.
    pub(crate) recent: VecDeque<(u64, Bytes)>,
    pub(crate) recent_bytes: usize,
    /// `recent` starts at the log's very first entry.
    pub(crate) all_in_memory: bool,
    pins: BTreeMap<u64, usize>,
}

/// Where a slot lies: group number and index within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) group: u64,
    pub(crate) index: u32,
}

impl Slotting {
    /// What holds whenever nobody has the lock.
    #[cfg(debug_assertions)]
    pub(crate) fn check(&self) {
        assert!(self.visible <= self.last, "readers see no entry after the last");
        assert!(self.last <= self.last_reserved, "an entry at a timestamp never handed out");
        assert!(self.committed <= self.last_reserved && self.all_durable <= self.last_reserved);
        assert!(
            self.recent.back().is_none_or(|(ts, _)| *ts == self.last),
            "the last entry is the newest in memory"
        );
        if let (Some(front), Some(back)) = (self.groups.front(), self.groups.back()) {
            assert!(front.open > 0, "a closed group holds nobody back");
            assert!(front.first > self.all_durable && back.last() <= self.last_reserved);
            assert!(front.open + front.entries.len() as u32 <= front.n, "a slot is open, filled, or dropped");
        }
    }
    pub(crate) fn reset(&mut self, last: u64) {
        self.groups.clear();
        self.last_reserved = self.last_reserved.max(last);
        self.committed = last;
        self.all_durable = last;
        self.last = last;
        self.visible = last;
    }
    /// `n` consecutive timestamps from `max(now, last) + 1` on (R-TIME-2). Returns the first and the group.
    pub(crate) fn reserve(&mut self, n: u32, wall_secs: u64) -> (u64, u64) {
        let now = wall_secs << 32;
        let mut first = self.last_reserved.max(now) + 1;
        // The counter never carries into the seconds within a group.
        if (first >> 32) != ((first + u64::from(n)) >> 32) {
            first = (((first >> 32) + 1) << 32) + 1;
        }
        self.last_reserved = first + u64::from(n) - 1;
        self.groups.push_back(Group { first, n, open: n, entries: Vec::new() });
        (first, self.base + self.groups.len() as u64 - 1)
    }
    /// Closes one slot; true when the hole-free prefix grew.
    pub(crate) fn close(&mut self, place: Place, entry: Option<Bytes>) -> bool {
        let Some(at) = place.group.checked_sub(self.base) else { return false };
        let Some(group) = self.groups.get_mut(at as usize) else { return false };
        group.open -= 1;
        if let Some(entry) = entry {
            group.entries.push((place.index, entry));
        }
        if group.open > 0 {
            return false;
        }
        group.entries.sort_by_key(|(i, _)| *i);
        if let Some((i, _)) = group.entries.last() {
            self.committed = self.committed.max(group.first + u64::from(*i));
        }
        if at == 0 { self.pop_closed() } else { false }
    }
    fn pop_closed(&mut self) -> bool {
        let before = self.all_durable;
        while self.groups.front().is_some_and(|g| g.open == 0) {
            let Some(group) = self.groups.pop_front() else { break };
            self.base += 1;
            self.all_durable = group.last();
            for (i, entry) in group.entries {
                self.push_recent(group.first + u64::from(i), entry);
            }
        }
        self.visible = self.last;
        self.all_durable > before
    }
    pub(crate) fn push_recent(&mut self, ts: u64, entry: Bytes) {
        debug_assert!(ts > self.last);
        self.last = ts;
        self.recent_bytes += entry.len();
        self.recent.push_back((ts, entry));
    }
    pub(crate) fn has_open(&self) -> bool {
        !self.groups.is_empty()
    }
    /// Starts a snapshot at `read` (`committed` when `None`) and pins the versions it needs.
    pub(crate) fn snapshot(&mut self, read: Option<u64>) -> Snapshot {
        let read = read.unwrap_or(self.committed);
        let mut in_flight: Vec<(u64, u64)> = Vec::new();
        for g in self.groups.iter().filter(|g| g.open > 0).take_while(|g| g.first <= read) {
            match in_flight.last_mut() {
                Some((_, last)) if *last + 1 == g.first => *last = g.last(),
                _ => in_flight.push((g.first, g.last())),
            }
        }
        let pin = in_flight.first().map_or(read, |(first, _)| first - 1);
        *self.pins.entry(pin).or_default() += 1;
        Snapshot { read, in_flight: in_flight.into_boxed_slice(), pin, ..Snapshot::default() }
    }
    pub(crate) fn unpin(&mut self, pin: u64) {
        if let Some(n) = self.pins.get_mut(&pin) {
            *n -= 1;
            if *n == 0 {
                self.pins.remove(&pin);
            }
        }
    }
    /// The smallest timestamp any open snapshot needs.
    pub(crate) fn lowest_pin(&self) -> Option<u64> {
        self.pins.first_key_value().map(|(pin, _)| *pin)
    }
    pub(crate) fn open_groups(&self) -> usize {
        self.groups.iter().filter(|g| g.open > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Option<Bytes> {
        Some(Bytes::from(&[5u8, 0, 0, 0, 0][..]))
    }

    #[test]
    fn a_hole_holds_back_the_prefix_but_not_the_committed_point() {
        let mut s = Slotting::default();
        let (a, ga) = s.reserve(1, 10);
        let (b, gb) = s.reserve(2, 10);
        assert_eq!((a, b), ((10 << 32) + 1, (10 << 32) + 2));
        assert!(!s.close(Place { group: gb, index: 0 }, entry()));
        assert!(!s.close(Place { group: gb, index: 1 }, entry()));
        assert_eq!((s.committed, s.all_durable, s.last), (b + 1, 0, 0));
        let snap = s.snapshot(None);
        assert!(snap.sees(b) && snap.sees(b + 1) && !snap.sees(a));
        assert_eq!(s.lowest_pin(), Some(a - 1));
        assert!(s.close(Place { group: ga, index: 0 }, entry()));
        assert_eq!((s.committed, s.all_durable, s.last), (b + 1, b + 1, b + 1));
        assert!(!snap.sees(a), "a snapshot does not change");
    }

    #[test]
    fn an_empty_slot_leaves_no_entry_and_no_hole() {
        let mut s = Slotting::default();
        let (a, ga) = s.reserve(1, 10);
        let (b, gb) = s.reserve(1, 10);
        s.close(Place { group: gb, index: 0 }, entry());
        assert!(s.close(Place { group: ga, index: 0 }, None));
        assert_eq!((s.all_durable, s.recent.len()), (b, 1));
        assert!(s.recent.iter().all(|(t, _)| *t != a));
    }

    #[test]
    fn time_standing_still_or_going_back_keeps_timestamps_rising() {
        let mut s = Slotting::default();
        let (a, _) = s.reserve(1, 10);
        let (b, _) = s.reserve(1, 9);
        assert!(b > a);
        s.last_reserved = (11 << 32) | u64::from(u32::MAX - 1);
        let (c, _) = s.reserve(5, 9);
        assert_eq!(c, (12 << 32) + 1, "a group does not straddle a second");
    }
}
