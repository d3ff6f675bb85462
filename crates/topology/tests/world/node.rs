//! One simulated process: its core, its log, and a disk on which only flushed things survive.

use super::{Answer, Rng, host};
use pando_base::{Millis, OpTime, Term, Timestamp};
use pando_topology::message::LastVote;
use pando_topology::*;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub at: OpTime,
    pub wall: Millis,
}

#[derive(Clone, Debug)]
pub enum Flush {
    Vote(LastVote),
    Config(Arc<ReplSetConfig>),
}

pub struct Node {
    pub index: usize,
    pub alive: bool,
    /// Counts starts; parcels to an earlier life are lost.
    pub life: u64,
    pub core: Option<Core>,
    params: Params,
    // on disk
    pub disk_vote: LastVote,
    pub disk_config: Option<Arc<ReplSetConfig>>,
    pub durable: usize,
    // in memory
    pub log: Vec<Entry>,
    pub flushing: VecDeque<(u64, Flush)>,
    pub flush_log: Vec<(Millis, usize, OpTime)>,
    pub writable: bool,
    pub locked: bool,
    pub fetching: Option<usize>,
    pub fetch_open: bool,
    pub fetch_sent: Millis,
    pub incarnation: u64,
    pub rbid: i64,
    pub wake_at: Option<Millis>,
    tokens: u64,
    pub heartbeat_tokens: BTreeMap<u64, (usize, Answer)>,
    pub vote_tokens: BTreeMap<u64, (usize, u64, i64)>,
    pub waits: BTreeMap<u64, OpTime>,
    pub replies: BTreeMap<u64, Result<CommandReply, i32>>,
    pub states: Vec<(Millis, StateChange)>,
    /// Where its log ended when it left for a set of its own.
    pub left: Option<OpTime>,
    /// Its clock is off by so much, and runs so many thousandths too fast.
    offset: Millis,
    drift: Millis,
}

impl Node {
    pub fn new(index: usize, config: Arc<ReplSetConfig>, params: Params, rng: &mut Rng) -> Node {
        let first = Entry { at: OpTime::new(Timestamp::new(1, 1), -1), wall: 0 };
        let mut node = Node {
            index,
            alive: true,
            life: 0,
            core: None,
            params,
            disk_vote: LastVote::NONE,
            disk_config: Some(config),
            durable: 1,
            log: vec![first],
            flushing: VecDeque::new(),
            flush_log: Vec::new(),
            writable: false,
            locked: false,
            fetching: None,
            fetch_open: false,
            fetch_sent: 0,
            incarnation: 0,
            rbid: 1,
            wake_at: None,
            tokens: 0,
            heartbeat_tokens: BTreeMap::new(),
            vote_tokens: BTreeMap::new(),
            waits: BTreeMap::new(),
            replies: BTreeMap::new(),
            states: Vec::new(),
            left: None,
            offset: rng.below(2000) as Millis - 1000,
            drift: rng.below(5) as Millis - 2,
        };
        node.boot();
        node
    }

    fn boot(&mut self) {
        let config = self.disk_config.clone().map(|c| {
            let index = c.members.iter().position(|m| m.host == host(self.index));
            (c, index)
        });
        self.core = Some(Core::new(Boot {
            // Of its configuration: it may leave for another set.
            set_name: None,
            config,
            last_vote: self.disk_vote,
            positions: self.positions(0),
            params: self.params.clone(),
            state: MemberState::Secondary,
            promised: pando_base::OpTime::NULL,
        }));
    }

    /// Local time at world time `now`.
    pub fn clock(&self, now: Millis) -> Millis {
        now + self.offset + now / 1000 * self.drift
    }
    pub fn token(&mut self) -> u64 {
        self.tokens += 1;
        // Unique over lives: late answers find nothing.
        self.life * 1_000_000_000 + self.tokens
    }
    pub fn top(&self) -> OpTime {
        self.log.last().map_or(OpTime::NULL, |e| e.at)
    }
    pub fn log_id(&self, upto: usize) -> OpTime {
        upto.checked_sub(1).and_then(|i| self.log.get(i)).map_or(OpTime::NULL, |e| e.at)
    }
    pub fn positions(&self, _now: Millis) -> Positions {
        let at = |n: usize| {
            n.checked_sub(1)
                .and_then(|i| self.log.get(i))
                .map_or(Position::NULL, |e| Position::new(e.at, e.wall))
        };
        let all = at(self.log.len());
        Positions { written: all, applied: all, durable: at(self.durable) }
    }
    /// One entry; timestamps follow the wall clock but never go back.
    pub fn append(&mut self, now: Millis, term: Term) -> OpTime {
        let wall = self.clock(now);
        let top = self.top().ts;
        let secs = ((wall / 1000) as u32).max(top.secs());
        let ts =
            if secs > top.secs() { Timestamp::new(secs, 1) } else { Timestamp::new(secs, top.inc() + 1) };
        let at = OpTime::new(ts, term);
        self.log.push(Entry { at, wall });
        at
    }
    pub fn flushed(&mut self, id: u64) {
        let Some(place) = self.flushing.iter().position(|(i, _)| *i == id) else { return };
        if let Some((_, flush)) = self.flushing.remove(place) {
            match flush {
                Flush::Vote(v) => self.disk_vote = v,
                Flush::Config(c) => self.disk_config = Some(c),
            }
        }
    }
    /// Says whether more of the log is on disk now.
    pub fn sync_disk(&mut self, now: Millis) -> bool {
        let before = self.durable;
        let due: Vec<_> = self.flush_log.iter().filter(|(at, ..)| *at <= now).copied().collect();
        self.flush_log.retain(|(at, ..)| *at > now);
        for (_, upto, id) in due {
            // A rollback in between made the flush void.
            if self.log_id(upto) == id {
                self.durable = self.durable.max(upto);
            }
        }
        self.durable > before
    }
    pub fn crash(&mut self) {
        self.alive = false;
        self.life += 1;
        self.core = None;
        self.log.truncate(self.durable);
        self.flushing.clear();
        self.flush_log.clear();
        self.writable = false;
        self.locked = false;
        self.fetching = None;
        self.fetch_open = false;
        self.wake_at = None;
        self.heartbeat_tokens.clear();
        self.vote_tokens.clear();
        self.waits.clear();
    }
    pub fn restart(&mut self, _now: Millis) {
        self.alive = true;
        self.boot();
    }
}
