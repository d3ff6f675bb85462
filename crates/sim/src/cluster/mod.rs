//! A sharded cluster under faults: a set of config servers, two shards, two routers, all of it the servers' own code, and users
//! behind the routers.
//!
//! Members and routers are killed, lose power or stand still; links between any two of them are cut, slow or lossy; clocks
//! jump, disks are slow, primaries step down ([`faults`]). Each set is looked at as a set alone is, and every rule of those must
//! hold ([`sets`]). Users write through both routers, define collections, drop them and define others in their place
//! ([`users`]). At the end everything heals: what was promised must be kept, every document must be on the shard that owns it,
//! and whatever can be defined is defined once more ([`agreement`]).

mod agreement;
mod boot;
mod faults;
mod sets;
mod shape;
mod times;
mod users;

use crate::executor::lock;
use crate::links::Machine;
use crate::set::broken::{Broken, Counts};
use crate::set::{Failure, Options, lines};
use crate::{Exit, NetOptions, ProcessId, RouterNode, World};
use pando_env::Env;
use pando_router::ConfigDb;
use sets::MemberSet;
use shape::{FIRST_ROUTER, ROUTERS, Shape};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use users::Users;

/// Once everything has healed, everybody agrees within this time.
const LIVELY: Duration = Duration::from_secs(360);
/// Users' machines count from here.
const FIRST_CLIENT: u16 = 100;
/// Until users have ended.
const LAST_COMMANDS: Duration = Duration::from_secs(30);
/// The longest between two looks.
const LOOK_MS: u64 = 50;
/// Definitions are hit in their middle within this.
const SLICE: Duration = Duration::from_millis(2);
/// Polls that one second of a run may take on average: more is an endless loop.
const POLLS_A_SECOND: u64 = 60_000;
/// Polls that a run may take beyond that.
const POLLS_FREE: u64 = 6_000_000;

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub trace: u64,
    pub time: Duration,
    pub polls: u64,
    pub elections: u64,
    pub rollbacks: u64,
    /// Entries that the sets have committed.
    pub committed: usize,
    pub faults: Counts,
    pub users: users::Sums,
}

struct Run {
    options: Options,
    world: World,
    shape: Shape,
    /// The config servers first.
    sets: Vec<MemberSet>,
    routers: Vec<RouterNode>,
    times: times::Rule,
    clients: Vec<Machine>,
    operator: ProcessId,
    broken: Broken,
    /// Who will be lost, and when.
    lost: Vec<(Duration, usize)>,
    /// Things still break.
    breaking: bool,
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
    let end = run.world.sim.now() + Duration::from_secs(options.seconds);
    let mut next = run.world.sim.now() + Duration::from_millis(options.between_ms);
    while run.world.sim.now() < end {
        if run.world.sim.now() >= next {
            run.look()?;
            run.fault();
            next += Duration::from_millis(run.world.sim.below(options.between_ms * 2));
        }
        run.go_on(Duration::from_millis(LOOK_MS))?;
        run.lose_due();
        run.heal_due();
    }
    run.world.net.set_options(NetOptions::default());
    run.end_faults()?;
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
        let of = |s: &shape::Set| MemberSet::new(&world, seed, (&s.name, s.role), (s.first_port, s.members));
        let sets: Vec<MemberSet> = shape.sets.iter().map(of).collect();
        let configdb = ConfigDb { set: sets[0].name.clone(), hosts: sets[0].addrs() };
        let router = |i: u16| {
            let mut router = RouterNode::new(&world, FIRST_ROUTER + i, configdb.clone());
            router.boot();
            router
        };
        let routers = (0..ROUTERS).map(router).collect();
        let clients = (0..options.users).map(|u| Machine(FIRST_CLIENT + u as u16)).collect();
        Run {
            options: *options,
            shape,
            sets,
            routers,
            times: times::Rule::default(),
            clients,
            operator: world.sim.start_process(),
            broken: Broken::default(),
            lost: Vec::new(),
            breaking: true,
            users: Users::default(),
            report: Report::default(),
            world,
        }
    }
    fn env(&self, process: ProcessId) -> Env {
        self.env_of(process, FIRST_CLIENT - 1)
    }
    fn env_of(&self, process: ProcessId, machine: u16) -> Env {
        self.world.env_at(Machine(machine), process, self.sets[0].nodes[0].disk.clone())
    }
    fn router_addrs(&self) -> Vec<String> {
        self.routers.iter().map(RouterNode::addr).collect()
    }
    fn stop_if(&self, problems: Vec<String>) -> Result<(), Box<Failure>> {
        if problems.is_empty() { Ok(()) } else { Err(self.fail(problems)) }
    }
    fn fail(&self, problems: Vec<String>) -> Box<Failure> {
        let mut log = self.world.log_lines();
        for set in &self.sets {
            log.extend(set.watch.lines().map(|line| format!("set {}: {line}", set.name)));
        }
        Box::new(Failure { problems, log, faults: self.broken.counts.clone() })
    }

    /// Lets time pass, and looks at everybody again and again.
    fn go_on(&mut self, how_long: Duration) -> Result<(), Box<Failure>> {
        let end = self.world.sim.now() + how_long;
        while self.world.sim.now() < end {
            let next = self.world.sim.now() + Duration::from_millis(1 + self.world.sim.below(LOOK_MS));
            while self.world.sim.now() < next {
                self.world.sim.run_for(SLICE);
                if self.breaking && self.users.is_hit(self.world.sim.now()) {
                    self.look()?;
                    self.fault_amid_definition();
                }
            }
            self.look()?;
        }
        Ok(())
    }
    fn end_faults(&mut self) -> Result<(), Box<Failure>> {
        self.breaking = false;
        for who in 0..self.machines().len() {
            self.world.set_skew(self.machines()[who], 0);
        }
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
        self.sets.iter_mut().for_each(|set| set.look(now, &told, &mut problems));
        for (i, router) in self.routers.iter().enumerate() {
            if let Some(exit) = router.exit() {
                problems.push(format!("router {i} ended by itself: {exit:?}"));
            }
        }
        self.times.look(&self.routers, &mut problems);
        for panic in self.world.sim.take_panics() {
            problems.push(format!("a server panicked in \"{}\": {}", panic.task, panic.why));
        }
        if self.world.sim.polls() > POLLS_FREE + now.as_secs() * POLLS_A_SECOND {
            problems.push(format!("{} polls in {now:?}: something goes round", self.world.sim.polls()));
        }
        problems.extend(self.users.problems());
        self.stop_if(problems)
    }

    fn check(mut self, people: ProcessId) -> Result<Report, Box<Failure>> {
        let sim = self.world.sim.clone();
        let process = sim.start_process();
        let stage = Arc::new(Mutex::new(String::new()));
        let checking = agreement::Parts {
            env: self.env(process),
            routers: self.router_addrs(),
            sets: self.sets.iter().map(|s| (s.name.clone(), s.addrs())).collect(),
            users: self.users.clone(),
            stage: stage.clone(),
        };
        let problems = match sim.block_on(process, LIVELY, agreement::run(checking)) {
            Ok(found) => found,
            Err(why) => {
                let exits: Vec<Option<Exit>> =
                    self.sets.iter().flat_map(|s| &s.nodes).map(crate::Node::exit).collect();
                vec![format!("no agreement: {why:?} {:?} exits {exits:?}", lock(&stage))]
            }
        };
        self.stop_if(problems)?;
        self.look()?;
        sim.kill(people);
        sim.kill(self.operator);
        let judged = self.users.judge();
        self.stop_if(judged)?;
        Ok(Report {
            trace: sim.trace(),
            time: sim.now(),
            polls: sim.polls(),
            committed: self.sets.iter().map(|s| s.watch.committed.chain.len()).sum(),
            faults: self.broken.counts.clone(),
            users: self.users.sums(),
            ..self.report.clone()
        })
    }
}
