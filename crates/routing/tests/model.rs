//! Every order of events of a small cluster, with the cache and the judgement that ship: a key that moves between two shards, a
//! collection that is dropped and created again, a router whose cache two clients share.
//!
//! The config servers' truth changes at once; everybody else learns of it late: what a router reads may be under way for any
//! length of time, be lost, or come after it was given up, shards refresh when they like. Checked in every state:
//!
//! * a write is done by the key's owner only, in the collection that there is, and not while the key is being given away;
//! * a read is answered by a shard that knows itself that it owns the key;
//! * whoever was told that a table is old gets one that is no older than the truth was then;
//! * nobody is told of a failure that did not happen, and nobody waits for ever.
//!
//! `MODEL_STATES=20000000 cargo test -p pando-routing --test model -- --ignored --nocapture` looks at the whole space.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use pando_base::{ErrorCode, Timestamp};
use pando_bson::ObjectId;
use pando_routing::cache::{Action, Cache, Cached, Event, Failure, Ticket};
use pando_routing::check::{Access, Known, Section, Verdict, judge};
use pando_routing::mutants::{self, Mutant};
use pando_routing::version::{ChunkVersion, Generation, Placement};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::{Hash, Hasher};

/// The collection of this time and where its only key is. Ordered as the truth changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Table {
    generation: u32,
    major: u32,
    owner: usize,
}

impl Cached for Table {
    type Version = Table;
    fn covers(&self, wanted: &Table) -> bool {
        self >= wanted
    }
    fn is_older_than(&self, other: &Table) -> bool {
        self < other
    }
}

impl Table {
    /// Of a shard's part: the moved key's placement for its owner, and for the former owner that of what it kept, which is as new.
    fn version(self) -> ChunkVersion {
        let generation =
            Generation { epoch: ObjectId([0; 12]), timestamp: Timestamp::new(self.generation, 1) };
        ChunkVersion::new(generation, Placement::new(self.major, 0))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Client {
    Idle,
    /// What the table must not be older than.
    Waits(Table),
    Has(Ticket, Table),
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    None,
    Writes,
    All,
    /// Decided by the config servers; the donor does not know yet.
    Committed,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Message {
    /// On its way to the config servers.
    Read {
        attempt: u64,
        since: Option<Table>,
    },
    Answer {
        attempt: u64,
        result: Result<Table, Broken>,
    },
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Broken {
    Torn,
    Lost,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    truth: Table,
    /// What each shard knows; nothing before it has asked.
    shards: [Option<Table>; 2],
    moving: Phase,
    cache: Cache<u8, Table>,
    clients: [Client; 2],
    network: BTreeSet<Message>,
    moves: u8,
    drops: u8,
    losses: u8,
    /// Shards that forget what they know, as by a start.
    restarts: u8,
    /// Clients that want to know how it is now.
    renewals: u8,
}

const NAME: u8 = 0;
const ACCESS: [Access; 2] = [Access::Write, Access::Read];

struct Limits {
    moves: u8,
    drops: u8,
    losses: u8,
    restarts: u8,
    renewals: u8,
}

impl World {
    fn new(limits: &Limits) -> World {
        World {
            truth: Table { generation: 1, major: 1, owner: 0 },
            shards: [None; 2],
            moving: Phase::None,
            cache: Cache::new(10),
            clients: [Client::Idle; 2],
            network: BTreeSet::new(),
            moves: limits.moves,
            drops: limits.drops,
            losses: limits.losses,
            restarts: limits.restarts,
            renewals: limits.renewals,
        }
    }

    fn feed(&mut self, event: Event<u8, Table>, limits: &Limits) -> Result<(), String> {
        let mut out = Vec::new();
        self.cache.step(event, &mut out);
        for action in out {
            match action {
                Action::Give { token, ticket, table } => {
                    let Client::Waits(at_least) = self.clients[token as usize] else {
                        return Err(format!("client {token} got a table that it did not ask for"));
                    };
                    if table < at_least {
                        return Err(format!("client {token} knows of {at_least:?} and got {table:?}"));
                    }
                    self.clients[token as usize] = Client::Has(ticket, table);
                }
                Action::Fail { token, code, .. } => {
                    // Three tries, of which each drop tears one.
                    if limits.losses + limits.drops < 3 {
                        return Err(format!("client {token} was told of {code:?}"));
                    }
                    self.clients[token as usize] = Client::Idle;
                }
                Action::Fetch { attempt, since, .. } => {
                    _ = self.network.insert(Message::Read { attempt, since })
                }
            }
        }
        Ok(())
    }

    fn ask(&self, i: usize, at_least: Table, limits: &Limits) -> Result<World, String> {
        let mut w = self.clone();
        w.clients[i] = Client::Waits(at_least);
        w.feed(Event::Get { token: i as u64, name: NAME }, limits)?;
        Ok(w)
    }

    /// A client's request reaches the shard of its table.
    fn send(&self, i: usize, ticket: Ticket, table: Table, limits: &Limits) -> Result<World, String> {
        let (s, access) = (table.owner, ACCESS[i]);
        let donor = s == self.truth_before().owner;
        let section = match self.moving {
            Phase::Writes if donor => Some(Section::BlocksWrites),
            Phase::All | Phase::Committed if donor => Some(Section::BlocksAll),
            _ => None,
        };
        let known = self.shards[s].map_or(Known::Nothing, |t| Known::Sharded(t.version()));
        let mut w = self.clone();
        match judge(Some(table.version()), known, section, access) {
            Verdict::Go => {
                self.check_answered(s, table, access)?;
                w.clients[i] = Client::Done;
                return Ok(w);
            }
            // Told when the section has ended; the model lets the client ask at any moment after.
            Verdict::InSection if self.moving != Phase::None => return Ok(w),
            Verdict::InSection => {}
            Verdict::NotKnown => w.shards[s] = Some(self.truth),
            Verdict::Mismatch { wanted } => {
                if table.version().order(wanted) != Some(std::cmp::Ordering::Less) {
                    w.shards[s] = Some(self.truth);
                }
            }
        }
        w.feed(Event::Stale { name: NAME, ticket, wanted: self.shards[s] }, limits)?;
        w.ask(i, self.told(s, table), limits)
    }

    /// What a client knows that was sent away: a shard that knows of something newer says so.
    fn told(&self, s: usize, table: Table) -> Table {
        self.shards[s].map_or(table, |known| known.max(table))
    }
    /// Before a decision that the donor does not know of.
    fn truth_before(&self) -> Table {
        match self.moving {
            Phase::Committed => {
                let t = self.truth;
                Table { major: t.major - 1, owner: 1 - t.owner, ..t }
            }
            _ => self.truth,
        }
    }

    fn check_answered(&self, s: usize, table: Table, access: Access) -> Result<(), String> {
        let truth = self.truth;
        if (truth.generation, truth.owner) != (table.generation, s) {
            return Err(format!("shard {s} answered by {table:?} although {truth:?}"));
        }
        if access == Access::Write && self.moving != Phase::None && s == self.truth_before().owner {
            return Err(format!("shard {s} wrote while it gave the key away"));
        }
        let known = self.shards[s];
        if known.is_some_and(|k| k.owner != s || k.generation != table.generation) {
            return Err(format!("shard {s} answered and took the key for another's: {known:?}"));
        }
        Ok(())
    }

    fn next(&self, limits: &Limits) -> Result<Vec<World>, String> {
        let mut out = Vec::new();
        for i in 0..2 {
            match self.clients[i] {
                Client::Idle => {
                    out.push(self.ask(i, Table { generation: 0, major: 0, owner: 0 }, limits)?);
                    if self.renewals > 0 {
                        let mut w = self.clone();
                        w.renewals -= 1;
                        w.feed(Event::Renew { name: NAME }, limits)?;
                        out.push(w.ask(i, self.truth, limits)?);
                    }
                }
                Client::Has(ticket, table) => out.push(self.send(i, ticket, table, limits)?),
                Client::Waits(_) | Client::Done => {}
            }
        }
        self.change_truth(&mut out);
        for s in 0..2 {
            if self.restarts > 0 && self.shards[s].is_some() && self.moving == Phase::None {
                let mut w = self.clone();
                (w.shards[s], w.restarts) = (None, self.restarts - 1);
                out.push(w);
            }
        }
        for m in &self.network {
            self.deliver(m, limits, &mut out)?;
        }
        out.retain(|w| w != self);
        Ok(out)
    }

    fn change_truth(&self, out: &mut Vec<World>) {
        let mut w = self.clone();
        match self.moving {
            Phase::None => {
                let donor = self.truth.owner;
                if self.moves > 0 && self.shards[donor] == Some(self.truth) {
                    (w.moving, w.moves) = (Phase::Writes, self.moves - 1);
                    out.push(w.clone());
                }
                if self.drops > 0 {
                    // Under a section of all shards, so nobody acts by what was before.
                    let mut w = self.clone();
                    w.drops -= 1;
                    w.truth = Table {
                        generation: self.truth.generation + 1,
                        major: 1,
                        owner: 1 - self.truth.owner,
                    };
                    w.shards = [None; 2];
                    out.push(w);
                }
                return;
            }
            Phase::Writes => w.moving = Phase::All,
            Phase::All => {
                w.moving = Phase::Committed;
                w.truth = Table { major: self.truth.major + 1, owner: 1 - self.truth.owner, ..self.truth };
            }
            Phase::Committed => {
                (w.moving, w.shards[self.truth_before().owner]) = (Phase::None, Some(self.truth));
            }
        }
        out.push(w);
    }

    fn deliver(&self, m: &Message, limits: &Limits, out: &mut Vec<World>) -> Result<(), String> {
        let mut w = self.clone();
        w.network.remove(m);
        match m {
            Message::Read { attempt, since } => {
                let fits = since.is_none_or(|t| t.generation == self.truth.generation);
                let result = if fits { Ok(self.truth) } else { Err(Broken::Torn) };
                w.network.insert(Message::Answer { attempt: *attempt, result });
                out.push(w);
                if self.losses > 0 {
                    // Given up, and answered all the same.
                    let mut w = self.clone();
                    w.losses -= 1;
                    w.network.insert(Message::Answer { attempt: *attempt, result: Err(Broken::Lost) });
                    out.push(w);
                }
            }
            Message::Answer { attempt, result } => {
                let result = result.map_err(|b| match b {
                    Broken::Torn => Failure::Torn,
                    Broken::Lost => Failure::Error(ErrorCode::HostUnreachable, String::new()),
                });
                w.feed(Event::Fetched { name: NAME, attempt: *attempt, result }, limits)?;
                out.push(w);
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.clients.iter().all(|c| *c == Client::Done)
    }
}

fn digest(w: &World) -> u128 {
    let of = |salt: u64| {
        let mut h = std::collections::hash_map::DefaultHasher::new();
        (salt, w).hash(&mut h);
        h.finish()
    };
    u128::from(of(1)) << 64 | u128::from(of(2))
}

/// States seen, or what is wrong.
fn explore(limits: &Limits, most: usize) -> Result<usize, String> {
    let first = World::new(limits);
    let mut seen = HashSet::from([digest(&first)]);
    let mut queue = VecDeque::from([first]);
    while let Some(w) = queue.pop_front() {
        let next = w.next(limits)?;
        if next.is_empty() && !w.is_over() {
            return Err(format!("nothing goes on: {w:?}"));
        }
        for n in next {
            if seen.len() < most && seen.insert(digest(&n)) {
                queue.push_back(n);
            }
        }
    }
    Ok(seen.len())
}

const PLAIN: Limits = Limits { moves: 2, drops: 1, losses: 1, restarts: 1, renewals: 1 };

#[test]
fn nobody_is_answered_by_who_does_not_own_the_key() {
    let seen = explore(&PLAIN, 60_000).unwrap();
    assert!(seen > 20_000, "{seen} states");
}

#[test]
#[ignore = "a minute or more"]
fn the_whole_space() {
    let most = std::env::var("MODEL_STATES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000_000);
    let wide = Limits { moves: 3, drops: 2, losses: 2, restarts: 2, renewals: 2 };
    println!("{} states", explore(&wide, most).unwrap());
}

#[test]
fn every_rule_that_is_switched_off_is_missed() {
    let failing = Limits { moves: 0, drops: 0, losses: 3, restarts: 0, renewals: 0 };
    for mutant in Mutant::ALL {
        let found = mutants::with(Some(mutant), || {
            explore(&PLAIN, 400_000).and_then(|_| explore(&failing, 400_000)).err()
        });
        println!("{mutant:?}: {}", found.as_deref().unwrap_or("not noticed"));
        assert!(found.is_some(), "{mutant:?} was not noticed");
    }
    assert!(explore(&failing, 400_000).is_ok());
}
