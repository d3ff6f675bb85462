//! Every order of events of a small set, with the core that ships: elections and the commit point.
//!
//! Three members; a few election timeouts, one write, and one crash that loses what was not flushed. Messages for votes
//! and positions stay under way for any length of time, or are lost; heartbeats and fetches happen at once, at any
//! moment. Disks flush votes and logs at any moment. Checked in every state:
//!
//! * ElectionSafety: one leader per term;
//! * NeverRollbackCommitted: an entry that a primary committed is never rolled back, and every later primary has it;
//! * a primary commits through entries of its own term only;
//! * what a follower takes for committed is committed.
//!
//! The budget of a plain run is small. The whole space that must hold before a release:
//! `MODEL_STATES=3000000 cargo test -p pando-topology --test model -- --ignored --nocapture`

// Billions of states: the fastest set there is, and its time is told.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use pando_base::{OpTime, Term, Timestamp};
use pando_topology::message::{Failure, LastVote, UpdatePosition, VoteReply, VoteRequest};
use pando_topology::mutants::Mutant;
use pando_topology::*;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

const N: usize = 3;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Node {
    core: Core,
    log: Vec<OpTime>,
    durable: usize,
    disk_vote: LastVote,
    /// Votes being written.
    votes: Vec<(u64, LastVote)>,
    /// State locks asked for.
    locks: Vec<u64>,
    writable: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Ask {
    from: usize,
    to: usize,
    election: u64,
    dry_run: bool,
    term: Term,
    last: (Term, u64),
    /// Asked in this life of the sender; an answer to an earlier one finds nobody.
    life: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Message {
    Ask(Ask),
    Answer { to: usize, from: usize, election: u64, term: Term, granted: bool, life: u8 },
    Positions { from: usize, to: usize, term: Term, at: Vec<(usize, (Term, u64), (Term, u64))> },
}

#[derive(Clone, PartialEq, Debug)]
struct State {
    nodes: Vec<Node>,
    lives: [u8; N],
    net: BTreeSet<Message>,
    /// Questions waiting for the voter's disk: token -> question.
    open: BTreeMap<(usize, u64), Ask>,
    leaders: BTreeMap<Term, usize>,
    committed: BTreeSet<(Term, u64)>,
    timeouts: u8,
    crashes: u8,
    writes: u8,
    heartbeats: u8,
    tokens: u64,
    /// Empty between steps.
    follow: Vec<(usize, Event)>,
}

#[derive(Clone, Copy, Debug)]
struct Budget {
    timeouts: u8,
    crashes: u8,
    writes: u8,
    heartbeats: u8,
    /// Logs are copied and flushed.
    logs: bool,
    /// Begins with a primary of term 1 whose first entry nobody else has.
    elected: bool,
    term_max: Term,
    states: usize,
    time: Duration,
}

#[derive(Clone, Debug)]
enum Step {
    Timeout(usize),
    Deliver(Message),
    FlushVote(usize),
    FlushLog(usize),
    Lock(usize),
    Crash(usize),
    Heartbeat(usize, usize),
    Fetch(usize, usize),
    Write(usize),
}

fn key(t: OpTime) -> (Term, u64) {
    (t.t, t.ts.0)
}
fn time(k: (Term, u64)) -> OpTime {
    OpTime::new(Timestamp(k.1), k.0)
}

impl Node {
    fn boot(i: usize, config: &Arc<ReplSetConfig>, vote: LastVote, log: Vec<OpTime>) -> Node {
        let durable = log.len();
        let mut node = Node {
            core: Core::new(Boot {
                set_name: Some("rs".to_owned()),
                config: Some((config.clone(), Some(i))),
                last_vote: vote,
                positions: Positions::NULL,
                // Standing is the timeout's move here, whenever it comes.
                params: Params { prompt_start: false, ..Params::default() },
                state: MemberState::Secondary,
                promised: pando_base::OpTime::NULL,
            }),
            log,
            durable,
            disk_vote: vote,
            votes: Vec::new(),
            locks: Vec::new(),
            writable: false,
        };
        let mut out = Actions::new();
        node.core.step(0, Event::Rewound(node.positions()), &mut out);
        node
    }
    fn positions(&self) -> Positions {
        let at = |n: usize| Position::new(n.checked_sub(1).map_or(OpTime::NULL, |i| self.log[i]), 0);
        Positions { written: at(self.log.len()), applied: at(self.log.len()), durable: at(self.durable) }
    }
}

fn initial(budget: Budget) -> (State, Arc<ReplSetConfig>) {
    let mut c = ReplSetConfig::single("rs", "n0:1");
    c.members = (0..N as i64).map(|i| Member::new(i, &format!("n{i}:1"))).collect();
    c.settings.catch_up_timeout_ms = 0;
    let config = Arc::new(c);
    let first = OpTime::new(Timestamp(1), 0);
    let nodes = (0..N).map(|i| Node::boot(i, &config, LastVote::NONE, vec![first])).collect();
    let mut s = State {
        nodes,
        lives: [0; N],
        net: BTreeSet::new(),
        open: BTreeMap::new(),
        leaders: BTreeMap::new(),
        committed: BTreeSet::new(),
        timeouts: budget.timeouts,
        crashes: budget.crashes,
        writes: budget.writes,
        heartbeats: budget.heartbeats,
        tokens: 0,
        follow: Vec::new(),
    };
    // Everyone has heard everyone once.
    for i in 0..N {
        for j in 0..N {
            if i != j {
                s.heartbeat(i, j);
            }
        }
    }
    if budget.elected {
        s.feed(0, Event::Fire(Timer::Election));
        loop {
            if !s.nodes[0].votes.is_empty() || !s.nodes[1].votes.is_empty() {
                let i = usize::from(s.nodes[0].votes.is_empty());
                s.take(&Step::FlushVote(i), &config);
            } else if let Some(m) = s.net.iter().find(|m| !matches!(m, Message::Ask(a) if a.to == 2)).cloned()
            {
                s.take(&Step::Deliver(m), &config);
            } else {
                break;
            }
        }
        s.net.clear();
        assert!(s.nodes[0].writable);
    }
    (s, config)
}

impl State {
    fn feed(&mut self, i: usize, event: Event) {
        let mut out = Actions::new();
        self.nodes[i].core.step(0, event, &mut out);
        for action in out {
            self.act(i, action);
        }
        self.follow_up();
    }

    /// What actions led to at once, after all actions of the step.
    fn follow_up(&mut self) {
        while !self.follow.is_empty() {
            let (i, event) = self.follow.remove(0);
            let mut out = Actions::new();
            self.nodes[i].core.step(0, event, &mut out);
            for action in out {
                self.act(i, action);
            }
        }
    }

    fn act(&mut self, i: usize, action: Action) {
        match action {
            Action::PersistVote { id, vote } => self.nodes[i].votes.push((id, vote)),
            // Configurations are another model's subject: written at once.
            Action::PersistConfig { id, .. } => self.follow.push((i, Event::Persisted(id))),
            Action::SendVoteRequest { to, election, request, .. } => {
                self.net.insert(Message::Ask(Ask {
                    from: i,
                    to: to.id as usize,
                    election,
                    dry_run: request.dry_run,
                    term: request.term,
                    last: key(request.last_applied),
                    life: self.lives[i],
                }));
            }
            Action::VoteReply { token, result } => {
                let Some(ask) = self.open.remove(&(i, token)) else { return };
                if let Ok(reply) = result {
                    self.net.insert(Message::Answer {
                        to: ask.from,
                        from: i,
                        election: ask.election,
                        term: reply.term,
                        granted: reply.granted,
                        life: ask.life,
                    });
                }
            }
            Action::SendPositions { to, update } => {
                let to = super_index(&to);
                let at = update
                    .optimes
                    .iter()
                    .map(|o| (o.member_id as usize, key(o.positions.written.op), key(o.positions.durable.op)))
                    .collect();
                // The newest says all that an older one says.
                self.net.retain(|m| !matches!(m, Message::Positions { from, .. } if *from == i));
                self.net.insert(Message::Positions { from: i, to, term: update.metadata.term, at });
            }
            Action::Drain { term } => self.follow.push((i, Event::Drained { term })),
            Action::BecomeWritable { term } => {
                let log: BTreeSet<_> = self.nodes[i].log.iter().map(|e| key(*e)).collect();
                for c in &self.committed {
                    assert!(log.contains(c), "a primary of term {term} lacks the committed entry {c:?}");
                }
                let at = self.append(i, term);
                self.follow.push((i, Event::FirstEntry { term, at: Position::new(at, 0) }));
            }
            Action::TakeStateLock { id } => self.nodes[i].locks.push(id),
            Action::State(change) => self.nodes[i].writable = change.writable,
            Action::CommitPoint(p) => self.on_commit_point(i, p.op),
            _ => {}
        }
    }

    fn append(&mut self, i: usize, term: Term) -> OpTime {
        let n = &mut self.nodes[i];
        let at = OpTime::new(Timestamp(n.log.last().map_or(1, |e| e.ts.0) + 1), term);
        n.log.push(at);
        at
    }

    fn on_commit_point(&mut self, i: usize, at: OpTime) {
        let n = &self.nodes[i];
        if n.core.is_leader() {
            assert_eq!(at.t, n.core.term(), "committed through an entry of another term");
            for e in n.log.iter().filter(|e| **e <= at) {
                self.committed.insert(key(*e));
            }
        }
    }

    /// A whole exchange: i asks j.
    fn heartbeat(&mut self, i: usize, j: usize) {
        let mut out = Actions::new();
        self.nodes[i].core.step(0, Event::Fire(Timer::Heartbeat(j as i64)), &mut out);
        let mut asked = None;
        for action in out {
            match action {
                Action::SendHeartbeat { to, seq, request, .. } if to.id == j as i64 => {
                    asked = Some((seq, request))
                }
                other => self.act(i, other),
            }
        }
        self.follow_up();
        let Some((seq, request)) = asked else { return };
        let mut out = Actions::new();
        self.nodes[j].core.step(0, Event::Heartbeat { token: 0, request }, &mut out);
        let mut answer = None;
        for action in out {
            match action {
                Action::HeartbeatReply { result, .. } => answer = result.ok(),
                other => self.act(j, other),
            }
        }
        self.follow_up();
        let Some(reply) = answer else { return };
        self.feed(i, Event::HeartbeatReplied { from: j as i64, seq, result: Ok::<_, Failure>(reply) });
    }

    /// i copies one entry from j, or gives up what j does not have.
    fn fetch(&mut self, i: usize, j: usize) {
        let (repl, oplog) = (self.nodes[j].core.metadata(), self.nodes[j].core.oplog_metadata(1));
        let host: Host = format!("n{j}:1").as_str().into();
        self.feed(i, Event::SyncSourceChosen(Some(host.clone())));
        let common = self.nodes[i].log.iter().zip(&self.nodes[j].log).take_while(|(a, b)| a == b).count();
        if common < self.nodes[i].log.len() {
            for e in &self.nodes[i].log[common..] {
                assert!(!self.committed.contains(&key(*e)), "the committed entry {e:?} is rolled back");
            }
            let n = &mut self.nodes[i];
            n.log.truncate(common);
            n.durable = n.durable.min(common);
            let positions = n.positions();
            return self.feed(i, Event::Rewound(positions));
        }
        let next = self.nodes[j].log.get(common).copied();
        let last_fetched = next.or(self.nodes[i].log.last().copied()).unwrap_or(OpTime::NULL);
        self.feed(i, Event::Fetched { from: host, repl, oplog, last_fetched });
        if let Some(e) = next.filter(|_| !self.nodes[i].core.is_leader()) {
            self.nodes[i].log.push(e);
            let positions = self.nodes[i].positions();
            self.feed(i, Event::Progress(positions));
        }
    }

    fn may_fetch(&self, i: usize, j: usize) -> bool {
        let (a, b) = (&self.nodes[i], &self.nodes[j]);
        let ahead = b.log.last() > a.log.last();
        !a.core.is_leader()
            && a.core.wants_to_fetch()
            && (ahead || a.core.commit_point().op < b.core.commit_point().op)
    }

    fn steps(&self, budget: Budget) -> Vec<Step> {
        let mut steps = Vec::new();
        for i in 0..N {
            let n = &self.nodes[i];
            if self.timeouts > 0 && n.core.term() < budget.term_max && n.core.timer(Timer::Election).is_some()
            {
                steps.push(Step::Timeout(i));
            }
            if !n.votes.is_empty() {
                steps.push(Step::FlushVote(i));
            }
            if budget.logs && n.durable < n.log.len() {
                steps.push(Step::FlushLog(i));
            }
            if !n.locks.is_empty() {
                steps.push(Step::Lock(i));
            }
            if self.crashes > 0 {
                steps.push(Step::Crash(i));
            }
            if self.writes > 0 && n.writable {
                steps.push(Step::Write(i));
            }
            for j in 0..N {
                if i != j {
                    if self.heartbeats > 0 {
                        steps.push(Step::Heartbeat(i, j));
                    }
                    if budget.logs && self.may_fetch(i, j) {
                        steps.push(Step::Fetch(i, j));
                    }
                }
            }
        }
        for m in &self.net {
            // A lost message is one that is never delivered.
            steps.push(Step::Deliver(m.clone()));
        }
        steps
    }

    fn take(&mut self, step: &Step, config: &Arc<ReplSetConfig>) {
        match step {
            Step::Timeout(i) => {
                self.timeouts -= 1;
                self.feed(*i, Event::Fire(Timer::Election));
            }
            Step::FlushVote(i) => {
                let (id, vote) = self.nodes[*i].votes.remove(0);
                self.nodes[*i].disk_vote = vote;
                self.feed(*i, Event::Persisted(id));
            }
            Step::FlushLog(i) => {
                self.nodes[*i].durable = self.nodes[*i].log.len();
                let positions = self.nodes[*i].positions();
                self.feed(*i, Event::Progress(positions));
            }
            Step::Lock(i) => {
                let id = self.nodes[*i].locks.remove(0);
                self.feed(*i, Event::StateLockHeld { id });
            }
            Step::Crash(i) => {
                self.crashes -= 1;
                self.lives[*i] += 1;
                let mut log = self.nodes[*i].log.clone();
                log.truncate(self.nodes[*i].durable);
                self.nodes[*i] = Node::boot(*i, config, self.nodes[*i].disk_vote, log);
                self.open.retain(|(n, _), _| n != i);
                for j in 0..N {
                    if j != *i {
                        self.heartbeat(*i, j);
                    }
                }
            }
            Step::Heartbeat(i, j) => {
                self.heartbeats -= 1;
                self.heartbeat(*i, *j);
            }
            Step::Fetch(i, j) => self.fetch(*i, *j),
            Step::Write(i) => {
                self.writes -= 1;
                let term = self.nodes[*i].core.term();
                self.append(*i, term);
                let positions = self.nodes[*i].positions();
                self.feed(*i, Event::Progress(positions));
            }
            Step::Deliver(m) => {
                self.net.remove(m);
                self.deliver(m, config);
            }
        }
        for n in &mut self.nodes {
            n.core.forget_history();
        }
        self.tokens = 0;
        self.check();
    }

    fn deliver(&mut self, m: &Message, config: &Arc<ReplSetConfig>) {
        match m {
            Message::Ask(ask) => {
                while self.open.contains_key(&(ask.to, self.tokens)) {
                    self.tokens += 1;
                }
                let token = self.tokens;
                self.open.insert((ask.to, token), ask.clone());
                let request = VoteRequest {
                    set_name: "rs".to_owned(),
                    dry_run: ask.dry_run,
                    term: ask.term,
                    candidate_index: ask.from,
                    config: ConfigId { version: config.version, term: ask.term },
                    last_applied: time(ask.last),
                    lost_primary: None,
                };
                self.feed(ask.to, Event::VoteRequested { token, request });
            }
            Message::Answer { to, from, election, term, granted, life } => {
                if self.lives[*to] == *life {
                    let reply = VoteReply { term: *term, granted: *granted, reason: String::new() };
                    let result = Ok::<_, Failure>(reply);
                    self.feed(*to, Event::VoteReplied { from: *from as i64, election: *election, result });
                }
            }
            Message::Positions { to, term, at, .. } => {
                let optimes = at
                    .iter()
                    .map(|(id, written, durable)| message::MemberPosition {
                        member_id: *id as i64,
                        config_version: 1,
                        positions: Positions {
                            written: Position::new(time(*written), 0),
                            applied: Position::new(time(*written), 0),
                            durable: Position::new(time(*durable), 0),
                        },
                    })
                    .collect();
                let mut metadata = self.nodes[*to].core.metadata();
                metadata.term = *term;
                self.feed(
                    *to,
                    Event::PositionsReceived { token: 0, update: UpdatePosition { optimes, metadata } },
                );
            }
        }
    }

    fn check(&mut self) {
        for (i, n) in self.nodes.iter().enumerate() {
            if n.core.is_leader() && n.core.mode() != LeaderMode::SteppingDown {
                let first = *self.leaders.entry(n.core.term()).or_insert(i);
                assert_eq!(first, i, "two leaders in term {}", n.core.term());
            }
            let point = n.core.committed_applied();
            for e in n.log.iter().filter(|e| e.ts.0 > 1 && **e <= point) {
                assert!(self.committed.contains(&key(*e)), "n{i} takes {e:?} for committed");
            }
        }
    }
}

fn super_index(host: &str) -> usize {
    host.as_bytes()[1] as usize - b'0' as usize
}

#[derive(Debug)]
struct Explored {
    states: usize,
    transitions: usize,
    complete: bool,
    violation: Option<String>,
    leaders: usize,
    commits: usize,
}

fn explore(budget: Budget) -> Explored {
    let begun = Instant::now();
    let (first, config) = initial(budget);
    let print = |s: &State| -> u128 {
        let mut h = TwoLanes::default();
        (&s.nodes, s.lives, &s.net, &s.open, &s.leaders, &s.committed).hash(&mut h);
        (s.timeouts, s.crashes, s.writes, s.heartbeats).hash(&mut h);
        h.value()
    };
    let mut seen: HashSet<u128> = HashSet::new();
    let mut queue = VecDeque::from([first]);
    let mut found =
        Explored { states: 0, transitions: 0, complete: false, violation: None, leaders: 0, commits: 0 };
    seen.insert(print(&queue[0]));
    while let Some(state) = queue.pop_front() {
        found.leaders = found.leaders.max(state.leaders.len());
        found.commits = found.commits.max(state.committed.len());
        for step in state.steps(budget) {
            let mut next = state.clone();
            let config = &config;
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| next.take(&step, config)));
            found.transitions += 1;
            if let Err(e) = result {
                let text = e
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| e.downcast_ref::<&str>().map(|s| (*s).to_owned()))
                    .unwrap_or_default();
                found.states = seen.len();
                found.violation = Some(format!("{text} (after {step:?})"));
                return found;
            }
            if seen.insert(print(&next)) {
                queue.push_back(next);
            }
        }
        if seen.len() >= budget.states || begun.elapsed() > budget.time {
            found.states = seen.len();
            return found;
        }
    }
    found.states = seen.len();
    found.complete = true;
    found
}

/// Two independent multiplicative lanes: fast, 128 bits, and the same on every run.
#[derive(Default)]
struct TwoLanes(u64, u64);
impl TwoLanes {
    fn value(&self) -> u128 {
        let mix = |z: u64| (z ^ (z >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (u128::from(mix(self.0)) << 64) | u128::from(mix(self.1))
    }
}
impl Hasher for TwoLanes {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517C_C1B7_2722_0A95);
        self.1 = (self.1.rotate_left(23) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

fn quiet<T>(run: impl FnOnce() -> T) -> T {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let value = run();
    std::panic::set_hook(hook);
    value
}

/// Votes only: who may lead.
const VOTES: Budget = Budget {
    timeouts: 2,
    crashes: 1,
    writes: 0,
    heartbeats: 1,
    logs: false,
    elected: false,
    term_max: 2,
    states: 200_000,
    time: Duration::from_secs(30),
};
/// A primary, its log, a second election and a crash.
const LOGS: Budget =
    Budget { timeouts: 1, writes: 0, heartbeats: 1, logs: true, elected: true, states: 60_000, ..VOTES };

#[test]
fn elections_hold_in_every_order_within_the_budget() {
    let found = explore(VOTES);
    println!("{found:?}");
    assert_eq!(found.violation, None);
    assert!(found.leaders >= 1, "the budget must reach an election: {found:?}");
}

#[test]
fn the_commit_point_holds_in_every_order_within_the_budget() {
    let found = explore(LOGS);
    println!("{found:?}");
    assert_eq!(found.violation, None);
    assert!(found.commits >= 1, "the budget must reach a commit: {found:?}");
}

/// See the top of the file.
#[test]
#[ignore = "minutes"]
fn whole() {
    let states = std::env::var("MODEL_STATES").ok().and_then(|s| s.parse().ok()).unwrap_or(1_200_000);
    let time = Duration::from_secs(3600);
    for budget in [VOTES, LOGS, Budget { writes: 1, timeouts: 2, ..LOGS }] {
        let found = explore(Budget { states, time, ..budget });
        println!("{found:?}");
        assert_eq!(found.violation, None);
    }
}

/// Those rules whose loss only an order of events shows; scripts miss the others (tests/scripts.rs).
#[test]
fn broken_rules_are_found() {
    let patient = |b: Budget| Budget { states: 3_000_000, time: Duration::from_secs(60), heartbeats: 0, ..b };
    let cases = [
        (Mutant::VoteBeforeDurable, patient(VOTES)),
        (Mutant::VoteTwice, patient(Budget { crashes: 0, ..VOTES })),
        (Mutant::CommitBeforeDurable, patient(LOGS)),
        (Mutant::CommitByMinority, patient(Budget { crashes: 0, ..LOGS })),
        (Mutant::VoteForStaleData, patient(Budget { crashes: 0, ..LOGS })),
    ];
    for (mutant, budget) in cases {
        pando_topology::mutants::activate(Some(mutant));
        let begun = Instant::now();
        let found = quiet(|| explore(budget));
        pando_topology::mutants::activate(None);
        println!("{mutant:?}: {:.1} s {found:?}", begun.elapsed().as_secs_f32());
        assert!(found.violation.is_some(), "{mutant:?} stays unseen");
    }
}
