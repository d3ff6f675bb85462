//! How far this node is: written, durable, applied; and how far the set is, as far as this node knows.
//!
//! The log knows timestamps only; here they have their terms and wall times. On a secondary entries come in
//! batches, and positions are ends of batches.

use crate::data::update_position::MemberPosition;
use pando_base::panics::poisoned;
use pando_base::{Millis, OpTime, Timestamp, limits};
use pando_env::sync::Notify;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// A place in the log and when its entry was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    pub op_time: OpTime,
    pub wall: Millis,
}

impl Position {
    pub const NULL: Position = Position { op_time: OpTime::NULL, wall: 0 };
}

#[derive(Debug)]
struct State {
    written: Position,
    durable: Position,
    applied: Position,
    committed: Position,
    /// Written, not known to be durable.
    unsynced: VecDeque<Position>,
    /// Whom we follow.
    source: Option<String>,
    /// What the source said of its own waiters.
    source_waits: bool,
    /// Until when (monotonic) the other members' positions are wanted at once, for a waiter of this node.
    awaited_until: Duration,
    rbid: i32,
    /// What members that report to this one have told of themselves and others.
    others: BTreeMap<i64, MemberPosition>,
}

/// Shared by the stages of the data path and by whoever shows or reports positions.
#[derive(Debug)]
pub struct Progress {
    state: Mutex<State>,
    changed: Shown,
    urgent: Shown,
}

/// `Notify` has no `Debug` of its own.
#[derive(Default)]
struct Shown(Notify);

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notify")
    }
}

impl Default for Progress {
    fn default() -> Progress {
        let state = State {
            written: Position::NULL,
            durable: Position::NULL,
            applied: Position::NULL,
            committed: Position::NULL,
            unsynced: VecDeque::new(),
            source: None,
            source_waits: true,
            awaited_until: Duration::ZERO,
            rbid: 1,
            others: BTreeMap::new(),
        };
        Progress { state: Mutex::new(state), changed: Shown::default(), urgent: Shown::default() }
    }
}

impl State {
    /// What holds whenever nobody has the lock.
    #[cfg(debug_assertions)]
    fn check(&self) {
        let at = |p: &Position| p.op_time.ts;
        assert!(at(&self.durable) <= at(&self.written), "durable is what was written");
        assert!(self.unsynced.iter().is_sorted_by_key(at), "positions are written in order");
        assert!(self.unsynced.back().is_none_or(|p| at(p) <= at(&self.written)));
    }
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        let state = self.state.lock().unwrap_or_else(poisoned);
        #[cfg(debug_assertions)]
        state.check();
        state
    }
    /// Bumped whenever anything here moves.
    pub fn changed(&self) -> &Notify {
        &self.changed.0
    }
    /// The log's end after a start or a change of role: everything in it is durable and applied.
    pub fn reset(&self, top: Position) {
        {
            let mut s = self.lock();
            (s.written, s.durable, s.applied) = (top, top, top);
            s.unsynced.clear();
        }
        self.changed.0.bump();
    }
    /// Written, applied and durable of a node that wrote its log itself until now.
    pub fn take_over(&self, [written, applied, durable]: &[Position; 3]) {
        {
            let mut s = self.lock();
            (s.written, s.applied, s.durable) = (*written, *applied, *durable);
            s.unsynced.clear();
            if written != durable {
                s.unsynced.push_back(*written);
            }
        }
        self.changed.0.bump();
    }
    pub fn wrote(&self, at: Position) {
        {
            let mut s = self.lock();
            s.written = at;
            s.unsynced.push_back(at);
        }
        self.changed.0.bump();
    }
    /// The log is synced up to `upto`.
    pub fn synced(&self, upto: Timestamp) {
        let mut moved = false;
        {
            let mut s = self.lock();
            while s.unsynced.front().is_some_and(|p| p.op_time.ts <= upto) {
                if let Some(p) = s.unsynced.pop_front() {
                    s.durable = p;
                    moved = true;
                }
            }
        }
        if moved {
            self.changed.0.bump();
        }
    }
    pub fn applied_to(&self, at: Position) {
        self.lock().applied = at;
        self.changed.0.bump();
    }
    /// The set's commit point; never moves back within one set (R-CP-5). True when it moved.
    pub fn advance_committed(&self, to: Position) -> bool {
        {
            let mut s = self.lock();
            if to.op_time <= s.committed.op_time {
                return false;
            }
            s.committed = to;
        }
        self.changed.0.bump();
        true
    }
    /// This node has left its set for another one: the commit point, and what others have told, was the old set's. How far its own log
    /// is stays (SV-SPLIT-11).
    pub fn leave_set(&self) {
        {
            let mut s = self.lock();
            s.committed = Position::NULL;
            s.source = None;
            s.others.clear();
        }
        self.changed.0.bump();
    }
    pub fn written(&self) -> Position {
        self.lock().written
    }
    pub fn durable(&self) -> Position {
        self.lock().durable
    }
    pub fn applied(&self) -> Position {
        self.lock().applied
    }
    pub fn committed(&self) -> Position {
        self.lock().committed
    }
    pub fn source(&self) -> Option<String> {
        self.lock().source.clone()
    }
    pub fn set_source(&self, source: Option<String>) {
        {
            let mut s = self.lock();
            s.source = source;
            // Until it says otherwise.
            s.source_waits = true;
        }
        self.changed.0.bump();
    }
    /// Bumped when somebody began to wait for positions.
    pub fn urgent(&self) -> &Notify {
        &self.urgent.0
    }
    /// What the source last said of its waiters, and those of its own source.
    pub fn source_waits(&self, waits: bool) {
        let began = !std::mem::replace(&mut self.lock().source_waits, waits) && waits;
        if began {
            self.urgent.0.bump();
        }
    }
    /// Somebody here waits for other members, at `now`; more of the kind will follow.
    pub fn await_positions(&self, now: Duration) {
        self.lock().awaited_until = now + Duration::from_millis(limits::POSITIONS_AWAITED_MS);
    }
    /// Does somebody, here or further up, wait for the positions of those that follow this node?
    pub fn positions_awaited(&self, now: Duration) -> bool {
        let s = self.lock();
        now < s.awaited_until || (s.source.is_some() && s.source_waits)
    }
    /// Takes in a report; positions only move forward. True when it was news (R-UPOS-2).
    pub fn saw_member(&self, m: MemberPosition) -> bool {
        let news = {
            let mut s = self.lock();
            let known = s.others.get(&m.member_id);
            let news = known.is_none_or(|k| {
                k.config_version != m.config_version
                    || m.applied.op_time > k.applied.op_time
                    || m.durable.op_time > k.durable.op_time
            });
            if news {
                s.others.insert(m.member_id, m);
            }
            news
        };
        if news {
            self.changed.0.bump();
        }
        news
    }
    /// Positions of the members that report to this one.
    pub fn others(&self) -> Vec<MemberPosition> {
        self.lock().others.values().copied().collect()
    }
    /// Number of rollbacks this node has been through, counted from 1 (R-RB-3).
    pub fn rbid(&self) -> i32 {
        self.lock().rbid
    }
    pub fn set_rbid(&self, rbid: i32) {
        self.lock().rbid = rbid;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u32) -> Position {
        Position { op_time: OpTime::new(Timestamp::new(n, 1), 1), wall: i64::from(n) }
    }

    #[test]
    fn durable_follows_written_by_whole_batches() {
        let p = Progress::default();
        p.reset(at(1));
        p.wrote(at(2));
        p.wrote(at(4));
        p.synced(Timestamp::new(3, 9));
        assert_eq!((p.written(), p.durable(), p.applied()), (at(4), at(2), at(1)));
        p.synced(at(4).op_time.ts);
        p.applied_to(at(4));
        assert_eq!((p.durable(), p.applied()), (at(4), at(4)));
    }

    #[test]
    fn the_commit_point_never_moves_back() {
        let p = Progress::default();
        assert!(p.advance_committed(at(3)) && !p.advance_committed(at(2)) && !p.advance_committed(at(3)));
        assert_eq!(p.committed(), at(3));
    }

    #[test]
    fn a_node_that_leaves_its_set_keeps_its_own_positions_only() {
        let p = Progress::default();
        p.reset(at(4));
        p.set_source(Some("a:1".to_owned()));
        assert!(p.advance_committed(at(3)));
        p.leave_set();
        assert_eq!((p.committed(), p.source(), p.applied()), (Position::NULL, None, at(4)));
        assert!(p.advance_committed(at(2)));
    }
}
