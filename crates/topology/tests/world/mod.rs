//! A whole replica set of cores in one thread: messages with delay and loss, disks that forget what was not flushed,
//! logs that are copied from the chosen sync source, clocks that disagree. One seed, one run.

#![allow(dead_code, unreachable_pub)]

pub mod check;
pub mod node;

use check::Checker;
use node::{Entry, Node};
use pando_base::{Millis, OpTime};
use pando_topology::message::{
    Failure, HeartbeatReply, HeartbeatRequest, UpdatePosition, VoteReply, VoteRequest,
};
use pando_topology::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// Something on its way to a node.
#[derive(Clone, Debug)]
pub enum Parcel {
    Event(Event),
    Heartbeat {
        from: usize,
        answer: Answer,
        request: HeartbeatRequest,
    },
    Vote {
        from: usize,
        election: u64,
        /// The receiver's number in the sender's configuration.
        id: i64,
        request: VoteRequest,
    },
    Positions {
        from: usize,
        update: UpdatePosition,
    },
    /// A fetch: entries after this one, please.
    Fetch {
        from: usize,
        after: OpTime,
        incarnation: u64,
    },
    Entries {
        from: usize,
        first: Option<OpTime>,
        entries: Vec<Entry>,
        repl: message::ReplSetMetadata,
        oplog: message::OplogQueryMetadata,
        incarnation: u64,
    },
    FetchFailed {
        from: usize,
        incarnation: u64,
    },
    /// A connection to that node broke.
    Lost {
        to: usize,
    },
    Wake,
    PollFetch,
}

/// Which event the answer to a heartbeat becomes.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// With the receiver's number in the sender's configuration.
    Heartbeat(u64, i64),
    Config,
    Quorum(u64, i64),
}

pub struct World {
    pub now: Millis,
    pub rng: Rng,
    pub nodes: Vec<Node>,
    queue: BTreeMap<(Millis, u64), (usize, u64, Parcel)>,
    order: u64,
    /// Directed pairs that cannot talk (silently).
    pub cut: BTreeSet<(usize, usize)>,
    /// Directed pairs where connections are refused though both ends live.
    pub rejects: BTreeSet<(usize, usize)>,
    pub loss_per_mille: u64,
    pub delay_max: Millis,
    pub checker: Checker,
    pub trace: bool,
    pub log: Vec<String>,
}

pub fn host(i: usize) -> String {
    format!("n{i}:1")
}
pub fn index_of(host: &str) -> usize {
    host.trim_start_matches('n').split(':').next().and_then(|n| n.parse().ok()).expect("a simulated host")
}

pub fn config_of(n: usize) -> ReplSetConfig {
    let mut c = ReplSetConfig::single("rs", &host(0));
    c.members = (0..n).map(|i| Member::new(i as i64, &host(i))).collect();
    c.term = 0;
    c
}

impl World {
    pub fn new(seed: u64, config: ReplSetConfig) -> World {
        World::with_params(seed, config, Params::default())
    }
    pub fn with_params(seed: u64, config: ReplSetConfig, params: Params) -> World {
        let n = config.members.len();
        let config = Arc::new(config);
        let mut rng = Rng::new(seed);
        let nodes = (0..n).map(|i| Node::new(i, config.clone(), params.clone(), &mut rng)).collect();
        let mut w = World {
            now: 1_000_000,
            rng,
            nodes,
            queue: BTreeMap::new(),
            order: 0,
            cut: BTreeSet::new(),
            rejects: BTreeSet::new(),
            loss_per_mille: 0,
            delay_max: 5,
            checker: Checker::default(),
            trace: false,
            log: Vec::new(),
        };
        for i in 0..n {
            w.feed(i, Event::Tick);
            w.post(i, 10, Parcel::PollFetch);
        }
        w
    }

    /// Something happens at `node` after `delay`, unless it crashes before.
    pub fn post(&mut self, node: usize, delay: Millis, parcel: Parcel) {
        self.order += 1;
        let life = self.nodes[node].life;
        self.queue.insert((self.now + delay, self.order), (node, life, parcel));
    }

    /// A message; `false` when it met a closed door (the sender knows at once).
    fn send(&mut self, from: usize, to: usize, parcel: Parcel) -> bool {
        if self.cut.contains(&(from, to)) || self.rng.chance(self.loss_per_mille) {
            return true;
        }
        if !self.nodes[to].alive || self.rejects.contains(&(from, to)) {
            return false;
        }
        let delay = 1 + self.rng.below(self.delay_max as u64) as Millis;
        self.post(to, delay, parcel);
        true
    }

    pub fn feed(&mut self, i: usize, event: Event) {
        let mut out = Actions::new();
        let local = self.nodes[i].clock(self.now);
        let Some(core) = self.nodes[i].core.as_mut() else { return };
        if self.trace {
            self.log.push(format!("{} n{i} <- {event:?}", self.now));
        }
        core.step(local, event, &mut out);
        for action in out {
            if self.trace {
                self.log.push(format!("{} n{i}    {action:?}", self.now));
            }
            self.act(i, action);
        }
        self.arrange_wake(i);
        self.checker.observe(&self.nodes, i);
    }

    fn arrange_wake(&mut self, i: usize) {
        let Some(deadline) = self.nodes[i].core.as_ref().and_then(|c| c.next_deadline()) else { return };
        let local = self.nodes[i].clock(self.now);
        if self.nodes[i].wake_at != Some(deadline) {
            self.nodes[i].wake_at = Some(deadline);
            self.post(i, (deadline - local).max(0) + 1, Parcel::Wake);
        }
    }

    fn act(&mut self, i: usize, action: Action) {
        match action {
            Action::Draw => {
                let n = self.rng.next();
                self.post(i, 0, Parcel::Event(Event::Random(n)));
            }
            Action::PersistVote { id, vote } => {
                self.nodes[i].flushing.push_back((id, node::Flush::Vote(vote)));
                let delay = 1 + self.rng.below(20) as Millis;
                self.post(i, delay, Parcel::Event(Event::Persisted(id)));
            }
            Action::PersistConfig { id, config, .. } => {
                self.nodes[i].flushing.push_back((id, node::Flush::Config(config)));
                let delay = 1 + self.rng.below(20) as Millis;
                self.post(i, delay, Parcel::Event(Event::Persisted(id)));
            }
            Action::SendHeartbeat { to, seq, request, .. } => {
                let t = index_of(&to.host);
                if !self.send(
                    i,
                    t,
                    Parcel::Heartbeat { from: i, answer: Answer::Heartbeat(seq, to.id), request },
                ) {
                    let e = Event::HeartbeatReplied { from: to.id, seq, result: Err(Failure::Refused) };
                    self.post(i, 1, Parcel::Event(e));
                }
            }
            Action::FetchConfig { from, request } => {
                let t = index_of(&from);
                self.send(i, t, Parcel::Heartbeat { from: i, answer: Answer::Config, request });
            }
            Action::CheckQuorum { id, to, request, .. } => {
                let t = index_of(&to.host);
                self.send(i, t, Parcel::Heartbeat { from: i, answer: Answer::Quorum(id, to.id), request });
            }
            Action::SendVoteRequest { to, election, request, .. } => {
                let t = index_of(&to.host);
                if !self.send(i, t, Parcel::Vote { from: i, election, id: to.id, request }) {
                    let e = Event::VoteReplied { from: to.id, election, result: Err(Failure::Refused) };
                    self.post(i, 1, Parcel::Event(e));
                }
            }
            Action::SendPositions { to, update } => {
                let t = index_of(&to);
                self.send(i, t, Parcel::Positions { from: i, update });
            }
            Action::SendStepUp { to } => {
                let t = index_of(&to.host);
                let e = Event::StepUp { token: 0, skip_dry_run: true };
                self.send(i, t, Parcel::Event(e));
            }
            Action::LocateSelf { id, config } => {
                let index = config.members.iter().position(|m| m.host == host(i));
                self.post(i, 1, Parcel::Event(Event::SelfLocated { id, index }));
            }
            other => self.act_locally(i, other),
        }
    }

    fn act_locally(&mut self, i: usize, action: Action) {
        match action {
            Action::HeartbeatReply { token, result } => self.answer_heartbeat(i, token, result),
            Action::VoteReply { token, result } => {
                let Some((from, election, id)) = self.nodes[i].vote_tokens.remove(&token) else { return };
                if let Ok(reply) = &result {
                    self.checker.on_vote_told(&self.nodes, i, token, reply);
                }
                let result: Result<VoteReply, Failure> =
                    result.map_err(|e| Failure::Answer(e.code, e.message.to_string()));
                self.send(i, from, Parcel::Event(Event::VoteReplied { from: id, election, result }));
            }
            Action::Drain { term } => {
                let delay = 1 + self.rng.below(5) as Millis;
                self.nodes[i].fetching = None;
                self.post(i, delay, Parcel::Event(Event::Drained { term }));
            }
            Action::DrainToLeave { id } => {
                let delay = 1 + self.rng.below(5) as Millis;
                self.nodes[i].fetching = None;
                self.post(i, delay, Parcel::Event(Event::DrainedToLeave { id }));
            }
            Action::JoinedRecipientSet => self.nodes[i].left = Some(self.nodes[i].top()),
            Action::BecomeWritable { term } => {
                let at = self.nodes[i].append(self.now, term);
                self.checker.on_first_entry(&self.nodes, i, term);
                self.post(i, 1, Parcel::Event(Event::FirstEntry { term, at: Position::new(at, self.now) }));
                self.after_write(i);
            }
            Action::TakeStateLock { id } => {
                let delay = 1 + self.rng.below(10) as Millis;
                self.nodes[i].locked = true;
                self.post(i, delay, Parcel::Event(Event::StateLockHeld { id }));
            }
            Action::ReleaseStateLock { .. } => self.nodes[i].locked = false,
            Action::State(change) => {
                self.nodes[i].writable = change.writable;
                self.nodes[i].states.push((self.now, change));
            }
            Action::SyncSource { choice: SourceChoice::Use(peer), .. } => {
                let source = index_of(&peer.host);
                self.nodes[i].fetching = Some(source);
            }
            Action::ChangeSyncSource { .. } => self.nodes[i].fetching = None,
            Action::WaitDone { id, result } => {
                if result.is_ok() {
                    self.checker.on_acknowledged(&self.nodes, i, id);
                }
                self.nodes[i].waits.remove(&id);
            }
            Action::Reply { token, result } => {
                self.nodes[i].replies.insert(token, result.map_err(|e| e.code.0));
            }
            Action::CommitPoint(p) => self.checker.on_commit_point(&self.nodes, i, p.op),
            _ => {}
        }
    }

    fn answer_heartbeat(&mut self, i: usize, token: u64, result: Result<HeartbeatReply, pando_base::Error>) {
        let Some((from, answer)) = self.nodes[i].heartbeat_tokens.remove(&token) else { return };
        let result = result.map_err(|e| Failure::Answer(e.code, e.message.to_string()));
        let event = match answer {
            Answer::Heartbeat(seq, id) => Event::HeartbeatReplied { from: id, seq, result },
            Answer::Config => Event::ConfigFetched { from: host(i).as_str().into(), result },
            Answer::Quorum(q, id) => Event::QuorumReplied { id: q, from: id, result },
        };
        self.send(i, from, Parcel::Event(event));
    }

    /// The next thing that happens; `false` when nothing ever will.
    pub fn step(&mut self) -> bool {
        let Some(((at, _), (node, life, parcel))) = self.queue.pop_first() else { return false };
        self.now = self.now.max(at);
        if self.nodes[node].alive && self.nodes[node].life == life {
            self.deliver(node, parcel);
        }
        true
    }

    pub fn run_for(&mut self, ms: Millis) {
        let end = self.now + ms;
        while self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= end) {
            self.step();
        }
        self.now = end;
    }

    /// Runs until it holds; panics with the trace's end after `ms`.
    pub fn run_until(&mut self, ms: Millis, what: &str, mut holds: impl FnMut(&World) -> bool) -> Millis {
        let start = self.now;
        while !holds(self) {
            assert!(self.now - start <= ms, "not within {ms} ms: {what}\n{}", self.tail());
            assert!(self.step(), "everything stands still: {what}");
        }
        self.now - start
    }

    pub fn tail(&self) -> String {
        let from = self.log.len().saturating_sub(60);
        let states: Vec<String> = self
            .nodes
            .iter()
            .map(|n| {
                n.core.as_ref().map_or("dead".to_owned(), |c| {
                    format!(
                        "{:?} {:?} term {} {:?} sync {:?}",
                        c.state(),
                        c.mode(),
                        c.term(),
                        n.top(),
                        c.sync_source()
                    )
                })
            })
            .collect();
        format!("{}\n{}", self.log[from..].join("\n"), states.join("\n"))
    }

    fn deliver(&mut self, i: usize, parcel: Parcel) {
        match parcel {
            Parcel::Wake => {
                self.nodes[i].wake_at = None;
                self.feed(i, Event::Tick);
            }
            Parcel::Event(event) => {
                if let Event::Persisted(id) = &event {
                    self.nodes[i].flushed(*id);
                }
                self.feed(i, event);
            }
            Parcel::Heartbeat { from, answer, request } => {
                let token = self.nodes[i].token();
                self.nodes[i].heartbeat_tokens.insert(token, (from, answer));
                self.feed(i, Event::Heartbeat { token, request });
            }
            Parcel::Vote { from, election, id, request } => {
                let token = self.nodes[i].token();
                self.nodes[i].vote_tokens.insert(token, (from, election, id));
                self.checker.on_vote_asked(i, token, &request);
                self.feed(i, Event::VoteRequested { token, request });
            }
            Parcel::Positions { update, .. } => {
                let token = self.nodes[i].token();
                self.feed(i, Event::PositionsReceived { token, update });
            }
            Parcel::Lost { to } => self.lost(i, to),
            other => self.deliver_fetch(i, other),
        }
    }

    fn deliver_fetch(&mut self, i: usize, parcel: Parcel) {
        match parcel {
            Parcel::PollFetch => self.poll_fetch(i),
            Parcel::Fetch { from, after, incarnation } => {
                let n = &self.nodes[i];
                let Some(core) = &n.core else { return };
                let (repl, oplog) = (core.metadata(), core.oplog_metadata(n.rbid));
                let first = n.log.iter().map(|e| e.at).find(|at| at.ts >= after.ts);
                let entries = n.log.iter().filter(|e| e.at.ts > after.ts).take(20).cloned().collect();
                self.send(i, from, Parcel::Entries { from: i, first, entries, repl, oplog, incarnation });
            }
            Parcel::Entries { from, first, entries, repl, oplog, incarnation } => {
                if self.nodes[i].fetching != Some(from) || self.nodes[i].incarnation != incarnation {
                    return;
                }
                self.nodes[i].fetch_open = false;
                // Before anything of it is taken, as the fetcher does.
                if self.nodes[i].core.as_ref().is_some_and(|c| c.is_of_another_set(&repl)) {
                    self.nodes[i].fetching = None;
                    return;
                }
                let mine = self.nodes[i].top();
                // The first entry must be this node's newest one: else the logs have parted (R-FETCH-5).
                if !mine.is_null() && first != Some(mine) {
                    if first.is_some() && !self.nodes[i].core.as_ref().is_some_and(|c| c.is_leader()) {
                        self.roll_back(i, from);
                    } else {
                        self.nodes[i].fetching = None;
                        let denied =
                            Event::SyncSourceDenied { host: host(from).as_str().into(), for_ms: 1000 };
                        self.feed(i, denied);
                    }
                    return;
                }
                let got = !entries.is_empty();
                let last = entries.last().map_or(mine, |e| e.at);
                // Metadata first, as the fetcher does: a higher term stops this batch on a primary.
                self.feed(
                    i,
                    Event::Fetched { from: host(from).as_str().into(), repl, oplog, last_fetched: last },
                );
                let still = self.nodes[i].fetching == Some(from)
                    && self.nodes[i]
                        .core
                        .as_ref()
                        .is_some_and(|c| !c.is_leader() || c.is_draining_or_catching_up());
                if still && got {
                    self.nodes[i].log.extend(entries);
                    self.after_write(i);
                }
            }
            Parcel::FetchFailed { from, incarnation } => {
                if self.nodes[i].fetching == Some(from) && self.nodes[i].incarnation == incarnation {
                    self.nodes[i].fetching = None;
                    self.nodes[i].fetch_open = false;
                    self.lost(i, from);
                    self.feed(i, Event::SyncSourceChosen(None));
                }
            }
            _ => {}
        }
    }

    /// A connection of `i` to another node broke.
    fn lost(&mut self, i: usize, to: usize) {
        let core = self.nodes[i].core.as_ref();
        let member = core.and_then(|c| c.config()?.members.iter().find(|m| m.host == host(to)));
        if let Some(to) = member.map(|m| m.id) {
            self.feed(i, Event::ConnectionLost { to });
        }
    }

    /// The fetcher's loop.
    fn poll_fetch(&mut self, i: usize) {
        let pause = 20 + self.rng.below(20) as Millis;
        self.post(i, pause, Parcel::PollFetch);
        let wants = self.nodes[i].core.as_ref().is_some_and(|c| c.wants_to_fetch());
        if !wants {
            self.nodes[i].fetching = None;
            return;
        }
        if self.nodes[i].fetching.is_none() {
            self.nodes[i].fetch_open = false;
            self.nodes[i].incarnation += 1;
            let last = self.nodes[i].top();
            let token = self.nodes[i].token();
            self.feed(i, Event::SyncSourceNeeded { token, last_fetched: last, initial_sync: false });
        }
        let Some(source) = self.nodes[i].fetching else { return };
        let open_for = self.now - self.nodes[i].fetch_sent;
        if self.nodes[i].fetch_open && open_for < 5000 {
            return;
        }
        self.nodes[i].fetch_open = true;
        self.nodes[i].fetch_sent = self.now;
        let (after, incarnation) = (self.nodes[i].top(), self.nodes[i].incarnation);
        if !self.send(i, source, Parcel::Fetch { from: i, after, incarnation }) {
            self.post(i, 1, Parcel::FetchFailed { from: source, incarnation });
        }
    }

    /// Drops what the source does not have (a shortcut: the common point is found by looking).
    fn roll_back(&mut self, i: usize, source: usize) {
        let theirs: Vec<Entry> = self.nodes[source].log.clone();
        let common = self.nodes[i].log.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        self.checker.on_roll_back(&self.nodes, i, common);
        let n = &mut self.nodes[i];
        n.log.truncate(common);
        n.durable = n.durable.min(common);
        n.rbid += 1;
        n.fetching = None;
        let positions = n.positions(self.now);
        self.feed(i, Event::Rewound(positions));
    }

    /// Something was appended: told at once, on disk a little later.
    fn after_write(&mut self, i: usize) {
        let positions = self.nodes[i].positions(self.now);
        self.feed(i, Event::Progress(positions));
        let upto = self.nodes[i].log.len();
        let hash = self.nodes[i].log_id(upto);
        let delay = 1 + self.rng.below(30) as Millis;
        self.post(i, delay, Parcel::Event(Event::Tick));
        self.nodes[i].flush_log.push((self.now + delay, upto, hash));
    }

    /// Flushes whose time has come.
    pub fn sync_disks(&mut self) {
        for i in 0..self.nodes.len() {
            if self.nodes[i].alive && self.nodes[i].sync_disk(self.now) {
                let positions = self.nodes[i].positions(self.now);
                self.feed(i, Event::Progress(positions));
            }
        }
    }

    // --- what tests do

    pub fn primary(&self) -> Option<usize> {
        self.nodes.iter().position(|n| n.alive && n.core.as_ref().is_some_and(|c| c.is_writable()))
    }
    /// The writable primary of the highest term.
    pub fn newest_primary(&self) -> Option<usize> {
        (0..self.nodes.len())
            .filter(|i| self.nodes[*i].alive && self.nodes[*i].core.as_ref().is_some_and(|c| c.is_writable()))
            .max_by_key(|i| self.nodes[*i].core.as_ref().map(|c| c.term()))
    }
    /// A client's write on a node that takes it; waits for a majority.
    pub fn write(&mut self, i: usize) -> bool {
        if !self.nodes[i].alive || !self.nodes[i].writable || self.nodes[i].locked {
            return false;
        }
        let Some(term) = self.nodes[i].core.as_ref().map(|c| c.term()) else { return false };
        let at = self.nodes[i].append(self.now, term);
        let id = self.nodes[i].token();
        self.nodes[i].waits.insert(id, at);
        self.after_write(i);
        let concern = write_concern::Concern { want: write_concern::Want::Majority, journaled: false };
        self.feed(i, Event::Await(write_concern::Waiter { id, target: at, concern }));
        true
    }
    pub fn crash(&mut self, i: usize) {
        if !self.nodes[i].alive {
            return;
        }
        self.nodes[i].crash();
        // Its kernel resets the connections of those who copy from it; the others notice when they call next.
        for other in 0..self.nodes.len() {
            let copies = self.nodes[other].fetching == Some(i);
            if other != i && copies && self.nodes[other].alive && !self.cut.contains(&(i, other)) {
                self.post(other, 1, Parcel::Lost { to: i });
            }
        }
    }
    pub fn restart(&mut self, i: usize) {
        if self.nodes[i].alive {
            return;
        }
        let now = self.now;
        self.nodes[i].restart(now);
        self.feed(i, Event::Tick);
        self.post(i, 10, Parcel::PollFetch);
    }
    pub fn core(&self, i: usize) -> &Core {
        self.nodes[i].core.as_ref().expect("a living node")
    }
    pub fn isolate(&mut self, i: usize) {
        for other in 0..self.nodes.len() {
            if other != i {
                self.cut.insert((i, other));
                self.cut.insert((other, i));
            }
        }
    }
    pub fn heal(&mut self) {
        self.cut.clear();
        self.loss_per_mille = 0;
    }
    /// Runs with disks flushing on time.
    pub fn advance(&mut self, ms: Millis) {
        let end = self.now + ms;
        while self.now < end {
            let slice = (end - self.now).min(5);
            self.run_for(slice);
            self.sync_disks();
        }
    }
    pub fn advance_until(&mut self, ms: Millis, what: &str, mut holds: impl FnMut(&World) -> bool) -> Millis {
        let start = self.now;
        while !holds(self) {
            assert!(self.now - start <= ms, "not within {ms} ms: {what}\n{}", self.tail());
            self.advance(5);
        }
        self.now - start
    }
}
