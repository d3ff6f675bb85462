//! A set of many tenants that splits under faults: three members that stay and three that leave, all of it the servers' own code, and
//! users who go where their tenant goes.
//!
//! A split is asked for at some moment, called off now and then, asked for again under another name; two may be asked for at once
//! ([`splits`], [`operator`]). Members are killed, lose power or stand still, links are cut, clocks jump, primaries step down, at any time and
//! before some step of most splits ([`faults`]). Both sets are looked at all the time, and every rule of a set must hold for each ([`side`]).
//! At the end everything heals and is judged: by what users were told ([`users`]), and by what the two sets are ([`judgement`]).

mod faults;
mod judgement;
mod knowledge;
mod operator;
mod shape;
mod side;
mod splits;
mod users;

use crate::executor::lock;
use crate::links::Machine;
use crate::node::Node;
use crate::set::asking::{connected, primary_of};
use crate::set::broken::{Broken, Counts};
use crate::set::{Failure, Options, lines};
use crate::{Exit, NetOptions, ProcessId, World};
use knowledge::{Knowledge, Said};
use pando_bson::{Document, doc};
use pando_env::Env;
use shape::{MEMBERS, STAY, Shape};
use side::Side;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use users::{Place, Users};

const PATIENCE: Duration = Duration::from_secs(300);
/// Once everything has healed, there are primaries and agreement within this time.
const LIVELY: Duration = Duration::from_secs(180);
/// Users' machines count from here.
const FIRST_CLIENT: u16 = 100;
/// Until users have ended.
const LAST_COMMANDS: Duration = Duration::from_secs(15);
/// The longest between two looks.
const LOOK_MS: u64 = 50;
/// A split is hit in its middle within this.
const SLICE: Duration = Duration::from_millis(1);
/// Both sets go on so long under faults once a split has committed.
const AFTERWARDS: Duration = Duration::from_secs(12);
/// Polls that one second of a run may take on average: more is an endless loop.
const POLLS_A_SECOND: u64 = 40_000;
/// Polls that a run may take beyond that.
const POLLS_FREE: u64 = 4_000_000;

/// What a run is asked for, where nobody says otherwise: short, and wild.
pub fn options() -> Options {
    Options {
        users: 3,
        seconds: 40,
        between_ms: 2500,
        longest_ms: 7000,
        pause_ms: 300,
        calm_ms: 3000,
        ..Options::default()
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub trace: u64,
    pub time: Duration,
    pub polls: u64,
    pub elections: u64,
    pub rollbacks: u64,
    /// Entries that the sets have committed.
    pub entries: usize,
    pub committed: usize,
    pub aborted: usize,
    pub refused: usize,
    /// Commands that were told to go elsewhere, or to stay after they had waited.
    pub moved: usize,
    pub stayed: usize,
    pub acknowledged: usize,
    pub repeated: usize,
    /// Of those, the ones that were acknowledged by the other set before.
    pub repeated_elsewhere: usize,
    pub reads: usize,
    pub register_commands: usize,
    pub transactions: usize,
    /// Steps of splits at which something broke.
    pub steps: BTreeMap<u64, u32>,
    pub faults: Counts,
}

struct Run {
    options: Options,
    world: World,
    shape: Shape,
    nodes: Vec<Node>,
    /// The set that splits, and the one that leaves it.
    sides: [Side; 2],
    clients: Vec<Machine>,
    operator: ProcessId,
    broken: Broken,
    hit: Option<faults::Hit>,
    schedule: splits::Schedule,
    knowledge: Arc<Mutex<Knowledge>>,
    users: Users,
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
    run.go_wild()?;
    run.world.net.set_options(NetOptions::default());
    run.end_faults()?;
    run.end_splits()?;
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
        let shape = Shape::of(seed);
        let nodes = (0..MEMBERS as u16).map(|i| shape.node(&world, seed, i)).collect();
        Run {
            options: *options,
            nodes,
            sides: [Side::donor(), Side::recipient()],
            clients: (0..options.users).map(|u| Machine(FIRST_CLIENT + u as u16)).collect(),
            operator: world.sim.start_process(),
            broken: Broken::default(),
            hit: None,
            schedule: splits::Schedule { next: Duration::ZERO, attempts: 0, last_id: 0, committed_at: None },
            knowledge: Arc::default(),
            users: Users::default(),
            report: Report::default(),
            shape,
            world,
        }
    }
    fn env(&self, process: ProcessId) -> Env {
        self.env_of(process, FIRST_CLIENT - 1)
    }
    fn env_of(&self, process: ProcessId, machine: u16) -> Env {
        self.world.env_at(Machine(machine), process, self.nodes[0].disk.clone())
    }
    fn addrs(&self) -> Vec<String> {
        self.nodes.iter().map(Node::addr).collect()
    }
    fn stop_if(&self, problems: Vec<String>) -> Result<(), Box<Failure>> {
        if problems.is_empty() { Ok(()) } else { Err(self.fail(problems)) }
    }
    fn fail(&self, problems: Vec<String>) -> Box<Failure> {
        let mut log = self.world.log_lines();
        for (side, first) in self.sides.iter().zip([0, STAY]) {
            log.extend(side.watch.lines().map(|line| format!("machines from {first}: {line}")));
        }
        log.extend(lock(&self.knowledge).splits.iter().map(|s| format!("{s:?}")));
        Box::new(Failure { problems, log, faults: self.broken.counts.clone() })
    }
    fn invite(&self, people: ProcessId, stop: &Arc<AtomicBool>) {
        let addrs = self.addrs();
        for user in 0..self.options.users {
            let place = Place {
                env: self.env_of(people, FIRST_CLIENT + user as u16),
                addrs: [addrs[..STAY].to_vec(), addrs[STAY..].to_vec()],
                user,
                pause_ms: self.options.pause_ms,
                stop: stop.clone(),
                knowledge: self.knowledge.clone(),
            };
            self.users.come(&self.world, people, &place);
        }
    }

    /// Faults and splits, until both sets have lived with a split for a while, or the time is over.
    fn go_wild(&mut self) -> Result<(), Box<Failure>> {
        let begun = self.world.sim.now();
        let end = begun + Duration::from_secs(self.options.seconds);
        let mut next = begun + Duration::from_millis(self.below(self.options.between_ms * 2));
        self.schedule.next = begun + Duration::from_millis(500 + self.below(6000));
        while self.world.sim.now() < end
            && self.schedule.committed_at.is_none_or(|at| self.world.sim.now() < at + AFTERWARDS)
        {
            if self.world.sim.now() >= next {
                self.look()?;
                self.fault();
                next += Duration::from_millis(self.below(self.options.between_ms * 2));
            }
            self.split_if_due();
            self.go_on(Duration::from_millis(LOOK_MS))?;
            self.heal_due();
        }
        Ok(())
    }
    /// Lets time pass, and looks at everybody again and again.
    fn go_on(&mut self, how_long: Duration) -> Result<(), Box<Failure>> {
        let end = self.world.sim.now() + how_long;
        while self.world.sim.now() < end {
            let next = self.world.sim.now() + Duration::from_millis(1 + self.below(LOOK_MS));
            while self.world.sim.now() < next {
                let slice = if self.has_hit() { SLICE } else { next - self.world.sim.now() };
                self.world.sim.run_for(slice);
                self.hit_if_due();
            }
            self.look()?;
        }
        Ok(())
    }
    fn end_faults(&mut self) -> Result<(), Box<Failure>> {
        self.end_hit();
        self.machines().into_iter().for_each(|machine| self.world.set_skew(machine, 0));
        while !self.broken.due.is_empty() {
            self.heal_all();
            self.go_on(Duration::from_millis(LOOK_MS))?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), Box<Failure>> {
        let mut problems = Vec::new();
        let told = self.world.take_lines();
        let count = |id: i32| told.iter().filter(|l| l.id == id).count() as u64;
        self.report.elections += count(lines::ELECTED);
        self.report.rollbacks += count(lines::ROLLED_BACK);
        let now = self.world.sim.now();
        for side in &mut self.sides {
            side.look(&self.nodes, now, &told, &mut problems);
        }
        for (i, node) in self.nodes.iter().enumerate() {
            if let Some(Exit::Failed(why)) = node.exit() {
                problems.push(format!("machine {i} ended by itself: {why}"));
            }
        }
        for panic in self.world.sim.take_panics() {
            problems.push(format!("a server panicked in \"{}\": {}", panic.task, panic.why));
        }
        if self.world.sim.polls() > POLLS_FREE + now.as_secs() * POLLS_A_SECOND {
            problems.push(format!("{} polls in {now:?}: something goes round", self.world.sim.polls()));
        }
        problems.append(&mut lock(&self.knowledge).problems);
        self.stop_if(problems)
    }

    fn initiate(&mut self) -> Result<(), Box<Failure>> {
        let process = self.world.sim.start_process();
        let env = self.env(process);
        let addrs = self.addrs();
        let config = self.shape.config(&addrs);
        let asks_for_logins = self.shape.asks_for_logins;
        let asking = async move {
            env.clock.sleep(Duration::from_millis(200)).await;
            let mut c = connected(&env, &addrs[0]).await;
            let mut body = Document::new();
            body.push("replSetInitiate", config);
            body.push("$db", "admin");
            let mut todo = vec![body];
            if asks_for_logins {
                todo.push(crate::login::create_user());
            }
            // All members are there, and have what there is.
            todo.push(doc! {
                "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": { "w": MEMBERS as i32 }, "$db": "d"
            });
            for body in todo {
                let reply = c.command(&body.to_raw()).await.map_err(|e| e.to_string())?;
                if !reply.get("ok").is_some_and(|v| v.is_truthy()) {
                    return Err(reply.to_string());
                }
                let at = primary_of(&env, &addrs).await;
                c = connected(&env, &addrs[at]).await;
            }
            Ok(())
        };
        let done = self.world.sim.block_on(process, PATIENCE, asking);
        self.world.sim.kill(process);
        match done {
            Ok(Ok(())) => self.look(),
            other => Err(self.fail(vec![format!("the set does not come to be: {other:?}")])),
        }
    }

    fn check(mut self, people: ProcessId) -> Result<Report, Box<Failure>> {
        let sim = self.world.sim.clone();
        let process = sim.start_process();
        let stage = Arc::new(Mutex::new(String::new()));
        let parts = judgement::Parts {
            env: self.env(process),
            addrs: self.addrs(),
            knowledge: self.knowledge.clone(),
            users: self.users.clone(),
            stage: stage.clone(),
        };
        let problems = match sim.block_on(process, LIVELY, judgement::run(parts)) {
            Ok(found) => found,
            Err(why) => {
                let exits: Vec<Option<Exit>> = self.nodes.iter().map(Node::exit).collect();
                vec![format!("no agreement: {why:?} {:?} exits {exits:?}", lock(&stage))]
            }
        };
        self.stop_if(problems)?;
        self.look()?;
        sim.kill(people);
        sim.kill(self.operator);
        self.stop_if(lock(&self.users.registers).problems())?;
        Ok(self.reported())
    }
    fn reported(&self) -> Report {
        let (sim, knowledge) = (&self.world.sim, lock(&self.knowledge));
        let written = lock(&self.users.written);
        Report {
            trace: sim.trace(),
            time: sim.now(),
            polls: sim.polls(),
            entries: self.sides.iter().map(|s| s.watch.committed.chain.len()).sum(),
            committed: knowledge.count(|s| *s == Said::Committed),
            aborted: knowledge.count(|s| *s == Said::Aborted),
            refused: knowledge.count(|s| matches!(s, Said::Refused(_))),
            moved: knowledge.moved,
            stayed: knowledge.stayed,
            acknowledged: written.acknowledged(),
            repeated: written.repeated,
            repeated_elsewhere: written.repeated_elsewhere,
            reads: written.reads,
            register_commands: lock(&self.users.registers).commands(),
            transactions: lock(&self.users.transactions).committed(),
            faults: self.broken.counts.clone(),
            ..self.report.clone()
        }
    }
}
