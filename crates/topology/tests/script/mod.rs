//! The language of `scripts/<area>/*.txt`: one core ("n0"), everyone else played by the script.
//!
//! A script is blocks of commands; under each block, after `---`, what the core asked for. `BLESS=1 cargo test -p
//! pando-topology --test scripts` writes that part anew. Positions read `term:seconds` (`2:15`, `2:15.3`).
//!
//! Not shown: heartbeats (`heartbeats` shows where they went), draws, topology versions and log notes (`notes on`).

pub mod args;
pub mod show;

use args::{Args, config_from, optime, position};
use pando_topology::message::*;
use pando_topology::write_concern::{Concern, Waiter, Want};
use pando_topology::*;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

pub struct Script {
    core: Option<Core>,
    config: Arc<ReplSetConfig>,
    now: i64,
    tokens: u64,
    /// Latest first.
    pub votes_asked: BTreeMap<i64, Vec<u64>>,
    pub heartbeats: BTreeMap<i64, u64>,
    pub persists: Vec<u64>,
    pub locks: Vec<u64>,
    pub located: Vec<u64>,
    pub quorum: Option<u64>,
    pub leaving: Option<u64>,
    pub notes: bool,
    pub out: String,
}

impl Script {
    pub fn new() -> Script {
        Script {
            core: None,
            config: Arc::new(config_from(&Args::parse("set 3"))),
            now: 1_000_000,
            tokens: 0,
            votes_asked: BTreeMap::new(),
            heartbeats: BTreeMap::new(),
            persists: Vec::new(),
            locks: Vec::new(),
            located: Vec::new(),
            quorum: None,
            leaving: None,
            notes: false,
            out: String::new(),
        }
    }

    fn core(&self) -> &Core {
        self.core.as_ref().expect("`boot` first")
    }
    fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    pub fn feed(&mut self, event: Event) {
        let mut actions = Actions::new();
        self.core.as_mut().expect("`boot` first").step(self.now, event, &mut actions);
        for action in actions {
            self.take(action);
        }
    }

    fn take(&mut self, action: Action) {
        match &action {
            Action::SendHeartbeat { to, seq, .. } => {
                self.heartbeats.insert(to.id, *seq);
            }
            Action::SendVoteRequest { to, election, .. } => {
                self.votes_asked.entry(to.id).or_default().insert(0, *election);
            }
            Action::PersistVote { id, .. } | Action::PersistConfig { id, .. } => self.persists.push(*id),
            Action::TakeStateLock { id } => self.locks.push(*id),
            Action::LocateSelf { id, .. } => self.located.push(*id),
            Action::CheckQuorum { id, .. } => self.quorum = Some(*id),
            Action::DrainToLeave { id } => self.leaving = Some(*id),
            _ => {}
        }
        if let Some(line) = show::action(&action, self.notes) {
            let _ = writeln!(self.out, "{line}");
        }
    }

    pub fn run(&mut self, line: &str) {
        let a = Args::parse(line);
        match a.command.as_str() {
            "set" => self.config = Arc::new(config_from(&a)),
            "boot" => self.boot(&a),
            "notes" => self.notes = a.flag("on"),
            "tick" => {
                self.now += a.word(0).parse::<i64>().expect("milliseconds");
                self.feed(Event::Tick);
            }
            "fire" => self.feed(Event::Fire(args::timer(a.word(0)))),
            "random" => self.feed(Event::Random(a.word(0).parse().expect("a number"))),
            "show" => self.show(),
            "timers" => self.show_timers(),
            "heartbeats" => {
                let to: Vec<String> = self.heartbeats.keys().map(|id| format!("n{id}")).collect();
                let _ = writeln!(self.out, "heartbeats under way: {}", to.join(" "));
            }
            "hb" => self.heartbeat_answer(&a),
            "fail" => self.heartbeat_failure(&a),
            "lost" => self.feed(Event::ConnectionLost { to: a.node(0) }),
            "in-hb" => self.heartbeat_asked(&a),
            "ask" => self.vote_asked(&a),
            "vote" => self.vote_answer(&a),
            "elect" => self.elect(&a),
            "durable" => {
                let id = self.persists.remove(0);
                self.feed(if a.flag("fails") { Event::PersistFailed(id) } else { Event::Persisted(id) });
            }
            "lock" => {
                let id = self.locks.remove(0);
                self.feed(Event::StateLockHeld { id });
            }
            _ => self.run_data(&a),
        }
    }

    fn run_data(&mut self, a: &Args) {
        match a.command.as_str() {
            "progress" => {
                let all = a.words.first().map(|w| position(w));
                let at = |name: &str, core: &Core, now: Position| {
                    let _ = core;
                    a.get(name).map_or(all.unwrap_or(now), position)
                };
                let core = self.core();
                let p = *core.positions();
                let positions = Positions {
                    written: at("written", core, p.written),
                    applied: at("applied", core, p.applied),
                    durable: at("durable", core, p.durable),
                };
                self.feed(Event::Progress(positions));
            }
            "follower" => {
                let state = MemberState::from_text(a.word(0)).expect("a state");
                self.feed(Event::FollowerState(state));
            }
            "drained" => {
                let term = a.number("term").unwrap_or(self.core().term());
                self.feed(Event::Drained { term });
            }
            "first" => {
                let at = position(a.word(0));
                self.feed(Event::FirstEntry { term: at.op.t, at });
            }
            "positions" => self.positions(a),
            "source" => {
                let token = self.token();
                let last_fetched = a.get("after").map_or(self.core().positions().written.op, optime);
                let initial_sync = a.flag("initial");
                self.feed(Event::SyncSourceNeeded { token, last_fetched, initial_sync });
            }
            "syncing" => {
                let host = (a.word(0) != "none").then(|| Host::from(format!("{}:1", a.word(0)).as_str()));
                self.feed(Event::SyncSourceChosen(host));
            }
            "fetched" => self.fetched(a),
            "stay?" => {
                let after = self.core().positions().written.op;
                let answer = self.core().should_change_source(&format!("{}:1", a.word(0)), after);
                let _ = writeln!(self.out, "{}", answer.unwrap_or("stay"));
            }
            "deny" => {
                let host = Host::from(format!("{}:1", a.word(0)).as_str());
                let for_ms = a.number("for").expect("for=<ms>");
                self.feed(Event::SyncSourceDenied { host, for_ms });
            }
            "cannot-tell" => {
                let host = Host::from(format!("{}:1", a.word(0)).as_str());
                let reached = optime(a.get("reached").expect("reached="));
                self.feed(Event::NoCommonPoint { host, reached });
            }
            "too-late" => {
                let host = Host::from(format!("{}:1", a.word(0)).as_str());
                let oldest = optime(a.get("oldest").expect("oldest="));
                self.feed(Event::BeginsTooLate { host, oldest });
            }
            "emptied" => self.feed(Event::Emptied { promised: optime(a.word(0)) }),
            "rewound" => self.feed(Event::Rewound(Positions::at(position(a.word(0))))),
            "stale" => self.feed(Event::TooStale(a.flag("on"))),
            _ => self.run_command(a),
        }
    }

    fn run_command(&mut self, a: &Args) {
        let token = self.token();
        match a.command.as_str() {
            "syncfrom" => self.feed(Event::SyncFrom { token, host: format!("{}:1", a.word(0)) }),
            "stepdown" => {
                let request = StepDownRequest {
                    force: a.flag("force"),
                    catch_up_ms: a.number("catchup").unwrap_or(10) * 1000,
                    period_ms: a.number("secs").unwrap_or(60) * 1000,
                };
                self.feed(Event::StepDown { token, request });
            }
            "stepup" => self.feed(Event::StepUp { token, skip_dry_run: a.flag("skip") }),
            "freeze" => {
                self.feed(Event::Freeze { token, secs: a.word(0).parse().expect("seconds") });
            }
            "maintenance" => self.feed(Event::Maintenance { token, on: a.flag("on") }),
            "abort-catchup" => self.feed(Event::AbortCatchUp { token }),
            "initiate" => {
                let config = self.config.clone();
                self.feed(Event::Initiate { token, config, self_index: 0 });
            }
            "reconfig" => {
                let config = Arc::new(config_from(a));
                let self_index = config.members.iter().position(|m| m.host == "n0:1");
                let force = a.flag("force");
                self.feed(Event::Reconfig { token, config, self_index, force, bump: 10_000 });
            }
            "locate" => {
                let id = self.located.remove(0);
                let index = a.words.first().and_then(|w| w.parse().ok());
                self.feed(Event::SelfLocated { id, index });
            }
            "config-from" => {
                // Another member's newer configuration arrives.
                let config = Arc::new(config_from(a));
                let mut reply = self.reply(&Args::parse("hb n1 PRIMARY"));
                reply.config_id = config.id();
                reply.config = Some(Ok(config));
                self.feed(Event::ConfigFetched { from: "n1:1".into(), result: Ok(reply) });
            }
            "unreadable-config-from" => {
                let mut reply = self.reply(&Args::parse("hb n1 PRIMARY"));
                reply.config_id = args::config_id(a.get("config").expect("config=version,term"));
                reply.config = Some(Err("BSON field 'ReplSetConfig.shape' is an unknown field.".to_owned()));
                self.feed(Event::ConfigFetched { from: "n1:1".into(), result: Ok(reply) });
            }
            "quorum" => {
                let id = self.quorum.expect("a quorum check");
                let reply = self.reply(a);
                let result = if a.flag("refused") { Err(Failure::Refused) } else { Ok(reply) };
                self.feed(Event::QuorumReplied { id, from: a.node(0), result });
            }
            "await" => {
                let journaled = a.flag("j");
                let want = match a.get("w").expect("w=") {
                    "majority" => Want::Majority,
                    w => w.parse().map_or_else(|_| Want::Mode(w.to_owned()), Want::Nodes),
                };
                let id = a.word(0).parse().expect("an id");
                let target = optime(a.get("target").expect("target="));
                self.feed(Event::Await(Waiter { id, target, concern: Concern { want, journaled } }));
            }
            "cancel" => self.feed(Event::CancelAwait { id: a.word(0).parse().expect("an id") }),
            "quiesce" => self.feed(Event::Quiesce { until: self.now + 15_000 }),
            "shutdown" => self.feed(Event::ShutDown),
            _ => self.run_split(a, token),
        }
    }

    fn run_split(&mut self, a: &Args, token: u64) {
        match a.command.as_str() {
            "split" => {
                let (tag, set_name) = (a.word(0).to_owned(), a.word(1).to_owned());
                let replica_set_id = pando_bson::ObjectId([2; 12]);
                self.feed(Event::Split { token, tag, set_name, replica_set_id, before: None });
            }
            "left-drained" => {
                let id = self.leaving.take().expect("a drain to leave");
                self.feed(Event::DrainedToLeave { id });
            }
            other => panic!("no such command: {other}"),
        }
    }

    fn boot(&mut self, a: &Args) {
        let at = a.get("at").map_or(Position::NULL, position);
        let vote = a.get("vote").map_or(LastVote::NONE, |v| {
            let (term, who) = v.split_once(':').expect("term:index");
            LastVote { term: term.parse().expect("a term"), candidate_index: who.parse().expect("an index") }
        });
        let mut params = Params {
            fast_failover: !a.flag("slow"),
            resync_when_too_stale: !a.flag("ask-operator"),
            ..Params::default()
        };
        // Its own stories only: most begin with everybody there and go on from the timeout.
        params.prompt_start = a.flag("prompt");
        params.election_handoff = !a.flag("no-handoff");
        let index = (!a.flag("removed")).then_some(0);
        let config = (!a.flag("uninitialized")).then(|| (self.config.clone(), index));
        let state =
            a.get("state").map_or(MemberState::Secondary, |s| MemberState::from_text(s).expect("a state"));
        let positions = Positions::at(at);
        let set_name = (!a.flag("nameless")).then(|| "rs".to_owned());
        self.core = Some(Core::new(Boot {
            set_name,
            config,
            last_vote: vote,
            positions,
            params,
            state,
            promised: pando_base::OpTime::NULL,
        }));
        self.feed(Event::Tick);
    }

    fn reply(&self, a: &Args) -> HeartbeatReply {
        let core = self.core();
        let at = a.get("at").map_or(Position::NULL, position);
        let durable = a.get("durable").map_or(at, position);
        let id = a.node(0);
        let state = a.words.get(1).and_then(|s| MemberState::from_text(s)).unwrap_or(MemberState::Secondary);
        let primary = match a.get("primary") {
            Some(p) => args::node(p),
            None if state == MemberState::Primary => id,
            None => -1,
        };
        HeartbeatReply {
            set_name: a.get("set").unwrap_or("rs").to_owned(),
            state,
            config_id: a.get("config").map_or(core.config_id(), args::config_id),
            config: None,
            positions: Positions { written: at, applied: at, durable },
            term: a.number("term").unwrap_or(core.term()),
            primary_id: primary,
            sync_source: a.get("source").map_or_else(String::new, |s| format!("{s}:1")),
            election_time: pando_base::Timestamp::ZERO,
            electable: !a.flag("unelectable"),
            lost_primary: args::lost(a, core.term()),
            committed: a.get("committed").map_or(Position::NULL, position),
        }
    }

    fn heartbeat_seq(&mut self, id: i64) -> u64 {
        if !self.heartbeats.contains_key(&id) {
            self.feed(Event::Fire(Timer::Heartbeat(id)));
        }
        self.heartbeats.remove(&id).expect("a heartbeat under way")
    }
    fn heartbeat_answer(&mut self, a: &Args) {
        let id = a.node(0);
        if a.get("rtt").is_some() {
            // Measured from now on.
            self.feed(Event::Fire(Timer::Heartbeat(id)));
        }
        let seq = self.heartbeat_seq(id);
        self.now += a.number("rtt").unwrap_or(0);
        let reply = self.reply(a);
        self.feed(Event::HeartbeatReplied { from: id, seq, result: Ok(reply) });
    }
    fn heartbeat_failure(&mut self, a: &Args) {
        let id = a.node(0);
        let failure = match a.word(1) {
            "refused" => Failure::Refused,
            "reset" => Failure::Reset,
            "timeout" => Failure::Timeout,
            "auth" => Failure::Auth,
            other => Failure::Other(other.to_owned()),
        };
        let seq = self.heartbeat_seq(id);
        self.feed(Event::HeartbeatReplied { from: id, seq, result: Err(failure) });
    }
    fn heartbeat_asked(&mut self, a: &Args) {
        let token = self.token();
        let core = self.core();
        let request = HeartbeatRequest {
            set_name: a.get("set").unwrap_or("rs").to_owned(),
            config: a.get("config").map_or(core.config_id(), args::config_id),
            from_host: format!("{}:1", a.word(0)),
            from_id: a.node(0),
            term: a.number("term").unwrap_or(core.term()),
            primary_id: a.get("primary").map_or(-1, args::node),
            lost_primary: args::lost(a, core.term()),
        };
        self.feed(Event::Heartbeat { token, request });
    }
    fn vote_asked(&mut self, a: &Args) {
        let token = self.token();
        let request = VoteRequest {
            set_name: a.get("set").unwrap_or("rs").to_owned(),
            dry_run: a.flag("dry"),
            term: a.number("term").expect("term="),
            candidate_index: a.node(0) as usize,
            config: a.get("config").map_or(self.core().config_id(), args::config_id),
            last_applied: a.get("at").map_or(pando_base::OpTime::NULL, optime),
            lost_primary: args::lost(a, self.core().term()),
        };
        self.feed(Event::VoteRequested { token, request });
    }
    fn vote_answer(&mut self, a: &Args) {
        let from = a.node(0);
        let asked = self.votes_asked.get(&from).cloned().unwrap_or_default();
        let election = asked[usize::from(a.flag("old"))];
        let term = a.number("term").unwrap_or(self.core().term());
        let reply = VoteReply { term, granted: a.flag("yes"), reason: String::new() };
        self.feed(Event::VoteReplied { from, election, result: Ok(reply) });
    }
    /// The short way to office: everybody says yes.
    fn elect(&mut self, a: &Args) {
        let others: Vec<i64> =
            self.core().config().expect("a set").members[1..].iter().map(|m| m.id).collect();
        let at = position(a.word(0));
        for id in &others {
            self.run(&format!("hb n{id} SECONDARY at={}", a.get("others").unwrap_or("0:1")));
        }
        self.feed(Event::Fire(Timer::Election));
        for id in &others {
            if self.votes_asked.contains_key(id) {
                self.run(&format!("vote n{id} yes"));
            }
        }
        self.run("durable");
        for id in &others {
            if self.votes_asked.contains_key(id) && !self.core().is_leader() {
                self.run(&format!("vote n{id} yes"));
            }
        }
        for id in &others {
            self.run(&format!("hb n{id} SECONDARY at={}", a.get("others").unwrap_or("0:1")));
        }
        let term = self.core().term();
        self.feed(Event::Drained { term });
        self.feed(Event::FirstEntry { term, at });
        // The new term in the configuration.
        while !self.persists.is_empty() {
            self.run("durable");
        }
        for id in &others {
            self.run(&format!("hb n{id} SECONDARY at={}", a.get("others").unwrap_or("0:1")));
        }
        self.out.clear();
    }
    fn positions(&mut self, a: &Args) {
        let token = self.token();
        let optimes = a
            .pairs
            .iter()
            .filter(|(k, _)| k.starts_with('n'))
            .map(|(k, v)| {
                let (written, durable) = v.split_once('/').unwrap_or((v, v));
                let (w, d) = (position(written), position(durable));
                let positions = Positions { written: w, applied: w, durable: d };
                MemberPosition { member_id: args::node(k), config_version: 1, positions }
            })
            .collect();
        let mut metadata = self.core().metadata();
        metadata.term = a.number("term").unwrap_or(metadata.term);
        metadata.replica_set_id = args::set_id(a).or(metadata.replica_set_id);
        self.feed(Event::PositionsReceived { token, update: UpdatePosition { optimes, metadata } });
    }
    fn fetched(&mut self, a: &Args) {
        let mut repl = self.core().metadata();
        repl.term = a.number("term").unwrap_or(repl.term);
        repl.replica_set_id = args::set_id(a).or(repl.replica_set_id);
        repl.is_primary = a.flag("primary");
        let written = self.core().positions().written.op;
        let last_fetched = a.get("fetched").map_or(written, optime);
        let applied = a.get("applied").map_or(last_fetched, optime);
        let oplog = OplogQueryMetadata {
            committed: a.get("committed").map_or(Position::NULL, position),
            applied,
            written: applied,
            rbid: 1,
            primary_index: a.get("primary").map_or(-1, args::node),
            sync_source_index: a.get("source").map_or(-1, args::node),
            sync_source_host: a.get("source").map_or_else(String::new, |s| format!("{s}:1")),
        };
        let from = Host::from(format!("{}:1", a.word(0)).as_str());
        self.feed(Event::Fetched { from, repl, oplog, last_fetched });
    }

    fn show(&mut self) {
        let line = show::core(self.core());
        let _ = writeln!(self.out, "{line}");
    }
    fn show_timers(&mut self) {
        let core = self.core.as_ref().expect("`boot` first");
        let mut timers: Vec<_> = core
            .timers()
            .filter(|(t, _)| !matches!(t, Timer::Heartbeat(_) | Timer::HeartbeatOverdue(_)))
            .map(|(t, at)| format!("{t:?} +{}", at - self.now))
            .collect();
        timers.sort();
        let _ = writeln!(self.out, "timers: {}", timers.join(", "));
    }
}

/// Runs a file; what it should read like.
pub fn play(text: &str) -> String {
    let mut script = Script::new();
    let mut result = String::new();
    let mut block: Vec<&str> = Vec::new();
    let mut skipping = false;
    for line in text.lines().chain([""]) {
        if line == "---" {
            skipping = true;
        } else if line.is_empty() {
            let commands = block.iter().any(|l| !l.starts_with('#'));
            if !block.is_empty() {
                script.out.clear();
                for l in &block {
                    let _ = writeln!(result, "{l}");
                    if !l.starts_with('#') {
                        script.run(l);
                    }
                }
                if commands {
                    let _ = writeln!(result, "---\n{}", script.out);
                } else {
                    result.push('\n');
                }
            }
            block.clear();
            skipping = false;
        } else if !skipping {
            block.push(line);
        }
    }
    result
}
