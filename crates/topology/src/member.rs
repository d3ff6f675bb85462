//! Members: their states, how far their data is, and what this node believes about each.

use pando_base::{Millis, OpTime, Term, Timestamp};
use pando_bson::ObjectId;
use std::sync::Arc;

/// `_id` in the configuration: stays with a member as long as it is in the set.
pub type MemberId = i64;
/// `host:port`.
pub type Host = Arc<str>;

/// R-STATE-1; the numbers are those of `replSetGetStatus`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum MemberState {
    Startup = 0,
    Primary = 1,
    Secondary = 2,
    Recovering = 3,
    Startup2 = 5,
    /// Only a view of others: nothing heard yet.
    Unknown = 6,
    Arbiter = 7,
    /// Only a view of others: no answer.
    Down = 8,
    Rollback = 9,
    Removed = 10,
}

impl MemberState {
    const ALL: [MemberState; 10] = [
        MemberState::Startup,
        MemberState::Primary,
        MemberState::Secondary,
        MemberState::Recovering,
        MemberState::Startup2,
        MemberState::Unknown,
        MemberState::Arbiter,
        MemberState::Down,
        MemberState::Rollback,
        MemberState::Removed,
    ];

    pub fn text(self) -> &'static str {
        match self {
            MemberState::Startup => "STARTUP",
            MemberState::Primary => "PRIMARY",
            MemberState::Secondary => "SECONDARY",
            MemberState::Recovering => "RECOVERING",
            MemberState::Startup2 => "STARTUP2",
            MemberState::Unknown => "UNKNOWN",
            MemberState::Arbiter => "ARBITER",
            MemberState::Down => "DOWN",
            MemberState::Rollback => "ROLLBACK",
            MemberState::Removed => "REMOVED",
        }
    }
    pub fn from_number(n: i64) -> Option<MemberState> {
        Self::ALL.into_iter().find(|s| *s as i64 == n)
    }
    pub fn from_text(text: &str) -> Option<MemberState> {
        Self::ALL.into_iter().find(|s| s.text() == text)
    }
    /// Answers reads.
    pub fn is_readable(self) -> bool {
        matches!(self, MemberState::Primary | MemberState::Secondary)
    }
}

/// `electionId` of a term: drivers compare them as bytes.
pub fn election_id(term: Term) -> ObjectId {
    let mut id = [0; 12];
    id[..4].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
    id[4..].copy_from_slice(&term.to_be_bytes());
    ObjectId(id)
}

/// A position in the log and when its entry was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Position {
    pub op: OpTime,
    pub wall: Millis,
}

impl Position {
    pub const NULL: Position = Position { op: OpTime::NULL, wall: 0 };
    pub const fn new(op: OpTime, wall: Millis) -> Position {
        Position { op, wall }
    }
    /// Takes `other` if it is newer; says whether it was.
    pub fn forward_to(&mut self, other: Position) -> bool {
        let newer = other.op > self.op;
        if newer {
            *self = other;
        }
        newer
    }
}

impl Default for Position {
    fn default() -> Position {
        Position::NULL
    }
}

/// How far one member is: applied <= written and durable <= written (R-TIME-5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Positions {
    /// In the member's oplog, visible to others.
    pub written: Position,
    /// In the member's data.
    pub applied: Position,
    /// In the member's oplog on disk.
    pub durable: Position,
}

impl Positions {
    pub const NULL: Positions =
        Positions { written: Position::NULL, applied: Position::NULL, durable: Position::NULL };
    /// All three at one place.
    pub const fn at(p: Position) -> Positions {
        Positions { written: p, applied: p, durable: p }
    }
    /// Positions never go back (except by rollback, told separately); says whether anything moved.
    pub fn forward_to(&mut self, other: &Positions) -> bool {
        let a = self.written.forward_to(other.written);
        let b = self.applied.forward_to(other.applied);
        let c = self.durable.forward_to(other.durable);
        a | b | c
    }
}

/// Round-trip time to a member (R-SYNC-8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ping {
    pub count: u32,
    pub mean_ms: Millis,
}

impl Ping {
    pub fn hit(&mut self, rtt_ms: Millis) {
        self.mean_ms = if self.count == 0 { rtt_ms } else { (self.mean_ms * 4 + rtt_ms) / 5 };
        self.count = self.count.saturating_add(1);
    }
}

/// The heartbeat that is under way to a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InFlight {
    pub seq: u64,
    /// When the first try left, and this one.
    pub first_sent: Millis,
    pub sent: Millis,
    pub retries: u32,
    /// Sent to find out quickly whether the primary is gone.
    pub probe: bool,
}

/// What this node believes about another member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MemberData {
    /// As its last answer said; [`MemberState::Down`] without an answer in time.
    pub state: MemberState,
    /// `None` = nothing heard yet.
    pub up: Option<bool>,
    pub up_since: Millis,
    /// Its last answer to our heartbeat, and the last heartbeat it sent us.
    pub last_heartbeat: Millis,
    pub last_heartbeat_recv: Millis,
    /// Last sign of life, direct or through a chain of position updates (R-UPOS-4).
    pub last_update: Millis,
    pub stale: bool,
    pub message: String,
    pub auth_issue: bool,
    pub electable: bool,
    pub election_time: Timestamp,
    pub config_version: i64,
    pub config_term: Term,
    /// The term it was in when it answered.
    pub term: Term,
    /// What its last heartbeat said.
    pub heard: Positions,
    /// The best known from heartbeats and position updates; only forward.
    pub best: Positions,
    /// Where it syncs from.
    pub sync_source: String,
    pub primary_id: MemberId,
    pub ping: Ping,
    pub in_flight: Option<InFlight>,
    /// Answered since this node was elected (R-CATCH-2).
    pub heard_since_election: bool,
    /// It found the primary of this term refusing connections.
    pub lost_primary: Option<crate::message::LostPrimary>,
}

impl Default for MemberData {
    fn default() -> MemberData {
        MemberData {
            state: MemberState::Unknown,
            up: None,
            up_since: 0,
            last_heartbeat: 0,
            last_heartbeat_recv: 0,
            last_update: 0,
            stale: false,
            message: String::new(),
            auth_issue: false,
            electable: false,
            election_time: Timestamp::ZERO,
            config_version: -1,
            config_term: -1,
            term: -1,
            heard: Positions::NULL,
            best: Positions::NULL,
            sync_source: String::new(),
            primary_id: -1,
            ping: Ping::default(),
            in_flight: None,
            heard_since_election: false,
            lost_primary: None,
        }
    }
}

impl MemberData {
    pub fn is_up(&self) -> bool {
        self.up == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn election_ids_grow_with_the_term() {
        assert_eq!(election_id(1).to_hex(), "7fffffff0000000000000001");
        assert!(election_id(2) > election_id(1));
    }

    #[test]
    fn the_mean_ping_moves_by_a_fifth() {
        let mut p = Ping::default();
        p.hit(10);
        p.hit(20);
        assert_eq!((p.count, p.mean_ms), (2, 12));
    }
}
