//! A real set of members under faults: elections, the data path and clients, all of it the server's own code.
//!
//! The members may be of every kind ([`shape`]). Users write wherever the primary is. Meanwhile members are killed or lose
//! power, stand still, or turn connections away; networks are cut in one direction or both, slow or lossy; disks are slow,
//! full or fail; clocks jump; an operator steps primaries down, changes who votes, takes members out and puts them in
//! again, and replaces machines ([`faults`], [`scenes`], [`orders`], [`replace`]). Some dozens of times a second, and before anything
//! breaks, all members are looked at from outside ([`look`]) and every rule of [`invariants`] must hold. At the end
//! everything heals: every promise made to the users must be kept, and the members must agree ([`agreement`]).

pub(crate) mod agreement;
pub(crate) mod asking;
pub(crate) mod broken;
pub(crate) mod committed;
mod faults;
pub(crate) mod invariants;
pub(crate) mod lines;
pub(crate) mod look;
pub(crate) mod options;
pub(crate) mod orders;
mod replace;
mod scenes;
mod shape;
pub(crate) mod story;
pub(crate) mod users;

use crate::executor::lock;
use crate::node::Exit;
use crate::{FaultyDisk, Machine, NetOptions, Node, World};
use asking::{connected, primary_of};
use broken::Broken;
pub use broken::Counts;
use invariants::Invariant;
use look::Watch;
pub use options::Options;
use pando_bson::{Document, doc};
use pando_env::Env;
use replace::Replacement;
use shape::{FIRST_PORT, Shape};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use users::acknowledged::{self, Acknowledged};
use users::anything;
use users::appends::{self, Appends};
use users::bank::{self, Bank};
use users::caller::Place;
use users::concerns::{self, Promises};
use users::late::{self, Late};
use users::lists::{self, Lists};
use users::register::{self, History};
use users::watcher::{self, Watched};

const PATIENCE: Duration = Duration::from_secs(900);
/// Once everything has healed, there is a primary and agreement within this time.
const LIVELY: Duration = Duration::from_secs(120);
/// Users' machines count from here.
const FIRST_CLIENT: u16 = 100;
/// Until users have ended: one may be looking for a primary, and then wait for its reply.
const LAST_COMMANDS: Duration = Duration::from_secs(30);
/// The longest between two looks.
const LOOK_MS: u64 = 50;
/// Polls that one second of a run may take on average: more is an endless loop.
const POLLS_A_SECOND: u64 = 30_000;
/// Polls that a run may take beyond that.
const POLLS_FREE: u64 = 3_000_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub trace: u64,
    pub time: Duration,
    pub polls: u64,
    pub acknowledged: usize,
    /// Reads and writes of registers, judged to be linearizable.
    pub register_commands: usize,
    pub majority_reads: usize,
    pub transfers: usize,
    /// Retryable statements sent again minutes after they were acknowledged.
    pub repeated: usize,
    /// Transactions and reads of lists, judged to be free of anomalies.
    pub transactions: usize,
    /// Shown by the change stream, how often it was resumed, and begun anew because no log reached back far enough.
    pub events: usize,
    pub resumed: usize,
    pub begun_anew: usize,
    pub elections: u64,
    pub rollbacks: u64,
    pub initial_syncs: u64,
    /// Sources whose log did not show where another had parted from it, and members that gave up asking.
    pub without_common_point: u64,
    pub copied_again: u64,
    /// Entries that rollbacks took back.
    pub undone: u64,
    pub committed: usize,
    pub faults: Counts,
}

#[derive(Debug)]
pub struct Failure {
    pub problems: Vec<String>,
    pub log: Vec<String>,
    pub faults: Counts,
}

struct Run {
    options: Options,
    world: World,
    nodes: Vec<Node>,
    clients: Vec<Machine>,
    operator: crate::ProcessId,
    broken: Broken,
    shape: Shape,
    replacement: Option<Replacement>,
    /// Alive while an operator's order is being carried out.
    orders: Weak<()>,
    forcing_until: Duration,
    next_member_id: i32,
    /// Members that have rolled back since scenes went on.
    rolled_back: Vec<usize>,
    watch: Watch,
    rules: Vec<Box<dyn Invariant>>,
    acknowledged: Arc<Mutex<Acknowledged>>,
    registers: Arc<Mutex<History>>,
    lists: Arc<Mutex<Lists>>,
    bank: Arc<Mutex<Bank>>,
    appends: Arc<Mutex<Appends>>,
    promises: Arc<Mutex<Promises>>,
    late: Arc<Mutex<Late>>,
    watched: Arc<Mutex<Watched>>,
    report: Report,
}

/// Runs one seed.
pub fn run(seed: u64, options: &Options) -> Result<Report, Box<Failure>> {
    let mut run = Run::new(seed, options);
    run.initiate()?;
    let stop = Arc::new(AtomicBool::new(false));
    let people = run.world.sim.start_process();
    run.invite(people, &stop);
    run.world.net.set_options(NetOptions { break_ppm: options.break_ppm, ..NetOptions::default() });
    let end = run.world.sim.now() + Duration::from_secs(options.seconds);
    let mut next = run.world.sim.now();
    while run.world.sim.now() < end {
        if run.world.sim.now() >= next {
            run.look()?;
            run.fault();
            next += Duration::from_millis(run.world.sim.below(options.between_ms * 2));
        }
        run.go_on(Duration::from_millis(LOOK_MS))?;
        run.go_on_with_scenes();
        let wrong = run.heal_due();
        run.stop_if(wrong)?;
    }
    run.world.net.set_options(NetOptions::default());
    run.end_faults()?;
    run.end_replacing()?;
    run.go_on(Duration::from_millis(options.calm_ms))?;
    stop.store(true, Relaxed);
    run.go_on(LAST_COMMANDS)?;
    run.check(people)
}

impl Drop for Run {
    fn drop(&mut self) {
        self.world.sim.end();
    }
}

impl Run {
    fn new(seed: u64, options: &Options) -> Run {
        let world = World::new(seed, NetOptions::default());
        world.keep_lines(options.lines);
        world.watch_lines(&lines::WATCHED);
        let shape = Shape::of(seed, options);
        let member = |i: u16| {
            let disk = FaultyDisk::new(seed.wrapping_mul(64).wrapping_add(u64::from(i)));
            let mut node = Node::member(&world, disk, FIRST_PORT + i);
            node.contains_panics = true;
            node.storage.log_segment_bytes = Some(shape::LOG_SEGMENT_BYTES);
            node.storage.oplog_bytes_max = shape.oplog_bytes;
            if shape.lsm {
                node.use_lsm();
            }
            node.asks_for_logins = shape.asks_for_logins;
            // Of each set some, and others in other seeds.
            node.encrypted = shape.encryption && (seed >> 4).wrapping_add(u64::from(i)) % 3 != 0;
            node.boot();
            node
        };
        let count = shape.members.len() as u16;
        let nodes = (0..count).map(member).collect();
        let promises: Arc<Mutex<Promises>> = Arc::default();
        Run {
            options: *options,
            nodes,
            clients: (0..options.users).map(|u| Machine(FIRST_CLIENT + u as u16)).collect(),
            operator: world.sim.start_process(),
            broken: Broken::default(),
            replacement: None,
            orders: Weak::new(),
            forcing_until: Duration::ZERO,
            next_member_id: i32::from(count),
            rolled_back: Vec::new(),
            watch: Watch::new(count.into(), FIRST_PORT),
            rules: invariants::all(&promises),
            shape,
            promises,
            late: Arc::default(),
            acknowledged: Arc::default(),
            registers: Arc::default(),
            lists: Arc::default(),
            bank: Arc::default(),
            appends: Arc::default(),
            watched: Arc::default(),
            report: Report::default(),
            world,
        }
    }
    fn env(&self, process: crate::ProcessId) -> Env {
        self.env_of(process, FIRST_CLIENT - 1)
    }
    fn env_of(&self, process: crate::ProcessId, machine: u16) -> Env {
        self.world.env_at(Machine(machine), process, self.nodes[0].disk.clone())
    }
    fn addrs(&self) -> Vec<String> {
        self.nodes.iter().map(Node::addr).collect()
    }
    /// Members that hold data.
    fn with_data(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|i| self.shape.holds_data(*i))
    }
    /// Another machine stands in the place of this member.
    fn forget(&mut self, who: usize) {
        self.watch.forget(who);
        self.rules.iter_mut().for_each(|rule| rule.forget(who));
    }
    fn stop_if(&self, problems: Vec<String>) -> Result<(), Box<Failure>> {
        if problems.is_empty() { Ok(()) } else { Err(self.fail(problems)) }
    }
    fn fail(&self, problems: Vec<String>) -> Box<Failure> {
        let faults = self.broken.counts.clone();
        let mut log = self.world.log_lines();
        log.extend(self.watch.lines());
        Box::new(Failure { problems, log, faults })
    }

    /// Users of every kind, each on a machine of its own.
    fn invite(&self, people: crate::ProcessId, stop: &Arc<AtomicBool>) {
        let sim = &self.world.sim;
        for user in 0..self.options.users {
            let place = Place {
                env: self.env_of(people, FIRST_CLIENT + user as u16),
                addrs: self.addrs(),
                user,
                pause_ms: self.options.pause_ms,
                stop: stop.clone(),
                routed: false,
            };
            let (p, told) = (place.clone(), self.acknowledged.clone());
            let pace = (user, p.pause_ms * 2);
            sim.spawn(people, "set", acknowledged::write(p.env, p.addrs, pace, told, p.stop));
            sim.spawn(people, "register", register::run(place.clone(), self.registers.clone()));
            sim.spawn(people, "lists", lists::run(place.clone(), self.lists.clone()));
            sim.spawn(people, "bank", bank::run(place.clone(), self.bank.clone()));
            sim.spawn(people, "appends", appends::run(place.clone(), self.appends.clone()));
            let data_bearing = self.with_data().count();
            sim.spawn(people, "concerns", concerns::run(place.clone(), data_bearing, self.promises.clone()));
            sim.spawn(people, "late", late::run(place.clone(), self.late.clone()));
            if user == 0 {
                sim.spawn(people, "watcher", watcher::run(place.clone(), self.watched.clone()));
                let (p, pace) = (place, (0, self.options.pause_ms));
                sim.spawn(people, "anything", anything::write(p.env, p.addrs, pace, p.stop));
            }
        }
    }

    /// Lets time pass, and looks at everybody again and again.
    fn go_on(&mut self, how_long: Duration) -> Result<(), Box<Failure>> {
        let end = self.world.sim.now() + how_long;
        while self.world.sim.now() < end {
            self.world.sim.run_for(Duration::from_millis(1 + self.world.sim.below(LOOK_MS)));
            self.look()?;
            self.start_again();
            self.go_on_replacing();
        }
        Ok(())
    }

    /// What a supervisor does with a process that ended to start with other files.
    fn start_again(&mut self) {
        for node in &mut self.nodes {
            if node.copies_files && node.exit() == Some(Exit::Clean) {
                node.boot();
            }
        }
    }

    /// Everything heals; clocks are set right as well, or a delayed member would lag by their difference for ever.
    fn end_faults(&mut self) -> Result<(), Box<Failure>> {
        self.nodes.iter().for_each(|node| self.world.set_skew(node.machine(), 0));
        while !self.is_whole() {
            let wrong = self.heal_all();
            self.stop_if(wrong)?;
            self.go_on(Duration::from_millis(LOOK_MS))?;
        }
        Ok(())
    }

    /// A replacement that is under way comes to its end.
    fn end_replacing(&mut self) -> Result<(), Box<Failure>> {
        let end = self.world.sim.now() + LIVELY;
        while let Some(what) = self.replacing() {
            if self.world.sim.now() >= end {
                return Err(self.fail(vec![format!("a replacement does not end: {what}")]));
            }
            self.go_on(Duration::from_millis(LOOK_MS))?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), Box<Failure>> {
        let mut problems = Vec::new();
        let told = self.world.take_lines();
        for line in &told {
            match line.id {
                lines::ELECTED => self.report.elections += 1,
                lines::COPIED => self.report.initial_syncs += 1,
                lines::CANNOT_TELL => self.report.without_common_point += 1,
                lines::COPIES_AGAIN => self.report.copied_again += 1,
                lines::ROLLED_BACK => {
                    self.report.rollbacks += 1;
                    self.rolled_back.extend(self.nodes.iter().position(|n| n.machine() == line.machine));
                    self.report.undone +=
                        lines::number(&line.attr, "totalEntriesRolledBackIncludingNoops").unwrap_or(0) as u64;
                }
                _ => {}
            }
        }
        let rules = &mut self.rules;
        let looked = self.watch.look(&self.nodes, self.world.sim.now(), told, &mut |look| {
            rules.iter_mut().for_each(|rule| rule.look(look, &mut problems));
        });
        problems.extend(looked.err());
        for (i, node) in self.nodes.iter().enumerate() {
            if let Some(Exit::Failed(why)) = node.exit().filter(|_| !self.is_sick(i)) {
                problems.push(format!("member {i} ended by itself: {why}"));
            }
        }
        for panic in self.world.sim.take_panics() {
            problems.push(format!("a server panicked in \"{}\": {}", panic.task, panic.why));
        }
        let seconds = self.world.sim.now().as_secs();
        if self.world.sim.polls() > POLLS_FREE + seconds * POLLS_A_SECOND {
            problems.push(format!("{} polls in {seconds} s: something goes round", self.world.sim.polls()));
        }
        self.stop_if(problems)
    }

    fn initiate(&self) -> Result<(), Box<Failure>> {
        let process = self.world.sim.start_process();
        let env = self.env(process);
        let addrs = self.addrs();
        let (config, default) = (self.shape.config(&addrs), self.shape.default_concern());
        let asks_for_logins = self.shape.asks_for_logins;
        let asking = async move {
            env.clock.sleep(Duration::from_millis(200)).await;
            let mut c = connected(&env, &addrs[0]).await;
            let mut body = Document::new();
            body.push("replSetInitiate", config);
            body.push("$db", "admin");
            let reply = c.command(&body.to_raw()).await.map_err(|e| e.to_string())?;
            if !reply.get("ok").is_some_and(|v| v.is_truthy()) {
                return Err(reply.to_string());
            }
            if asks_for_logins {
                on_primary(&env, &addrs, crate::login::create_user()).await?;
            }
            set_default_concern(&env, &addrs, default).await
        };
        let done = self.world.sim.block_on(process, PATIENCE, asking);
        self.world.sim.kill(process);
        match done {
            Ok(Ok(())) => Ok(()),
            other => Err(self.fail(vec![format!("replSetInitiate: {other:?}")])),
        }
    }

    fn check(mut self, people: crate::ProcessId) -> Result<Report, Box<Failure>> {
        let sim = self.world.sim.clone();
        let mut problems = Vec::new();
        let process = sim.start_process();
        let env = self.env(process);
        let addrs: Vec<String> = self.with_data().map(|i| self.nodes[i].addr()).collect();
        let late = self.late.clone();
        let (acknowledged, lists) = (self.acknowledged.clone(), self.lists.clone());
        let (bank, appends, watched) = (self.bank.clone(), self.appends.clone(), self.watched.clone());
        let stage = Arc::new(Mutex::new(String::new()));
        let told = stage.clone();
        let checking = async move {
            let at = primary_of(&env, &addrs).await;
            let mut order = vec![addrs[at].clone()];
            order.extend(addrs.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, a)| a.clone()));
            let mut c = connected(&env, &order[0]).await;
            let mut problems = acknowledged::check(&mut c, &acknowledged).await;
            problems.extend(lists::check(&mut c, &lists).await);
            problems.extend(bank::check(&mut c, &bank).await);
            problems.extend(late::check(&mut c, &late).await);
            problems.extend(appends::check(&mut c, &appends).await);
            problems.extend(watcher::catch_up(&env, &mut c, &watched, &told).await);
            let agreed = agreement::run(env, order, told).await;
            problems.extend(agreed.err().into_iter().flatten());
            problems
        };
        match sim.block_on(process, LIVELY, checking) {
            Ok(found) => problems.extend(found),
            Err(why) => {
                let exits: Vec<_> = self.nodes.iter().map(Node::exit).collect();
                problems.push(format!("no agreement: {why:?} {:?} exits {exits:?}", lock(&stage)));
            }
        }
        self.look()?;
        sim.kill(people);
        sim.kill(self.operator);
        problems.extend(lock(&self.registers).problems());
        let expected = self.watch.story.of(&self.watch.committed);
        problems.extend(watcher::judge(&lock(&self.watched), &expected));
        let uncommitted =
            lock(&self.lists).op_times.iter().find(|at| !self.watch.committed.may_name(**at)).copied();
        problems.extend(uncommitted.map(|at| format!("{at} was acknowledged and is not committed")));
        if !problems.is_empty() {
            return Err(self.fail(problems));
        }
        let watched = lock(&self.watched);
        let acknowledged = lock(&self.acknowledged).len() + lock(&self.lists).op_times.len();
        Ok(Report {
            trace: sim.trace(),
            time: sim.now(),
            polls: sim.polls(),
            acknowledged,
            register_commands: lock(&self.registers).commands(),
            majority_reads: lock(&self.lists).reads,
            transfers: lock(&self.bank).transfers(),
            repeated: lock(&self.late).repeated,
            transactions: lock(&self.appends).committed(),
            events: watched.events(),
            resumed: watched.resumed,
            begun_anew: watched.begun_anew(),
            committed: self.watch.committed.chain.len(),
            faults: self.broken.counts.clone(),
            ..self.report.clone()
        })
    }
}

/// A configuration that would change the default is refused as long as nobody has said what it shall be.
async fn set_default_concern(env: &Env, addrs: &[String], default: Document) -> Result<(), String> {
    let mut body = doc! { "setDefaultRWConcern": 1 };
    body.push("defaultWriteConcern", default);
    // By itself it is rolled back as any other write.
    body.push("writeConcern", doc! { "w": "majority" });
    body.push("$db", "admin");
    on_primary(env, addrs, body).await
}

async fn on_primary(env: &Env, addrs: &[String], body: Document) -> Result<(), String> {
    let at = primary_of(env, addrs).await;
    let mut c = connected(env, &addrs[at]).await;
    let reply = c.command(&body.to_raw()).await.map_err(|e| e.to_string())?;
    if reply.get("ok").is_some_and(|v| v.is_truthy()) { Ok(()) } else { Err(reply.to_string()) }
}
