//! The data path under faults: one fixed primary, a member that follows it, and one that follows that member.
//!
//! Users write at random, definitions included, while connections break, secondaries are killed or lose power at any
//! moment (also in the middle of their initial sync), and the primary restarts cleanly. Then everything heals, and the
//! three must hold the same data and tell the same story in their logs.

pub(crate) mod checks;
mod users;

use crate::executor::{Stuck, lock};
use crate::{FaultyDisk, NetOptions, Node, World};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long and how wild.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub users: u64,
    /// Mean virtual time between two commands of one user.
    pub pause_ms: u64,
    /// Faults before the world heals.
    pub faults: u32,
    /// Mean virtual time between two.
    pub between_ms: u64,
    /// Of a million writes to a connection, so many break it.
    pub break_ppm: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { users: 3, pause_ms: 12, faults: 8, between_ms: 400, break_ppm: 400 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub seed: u64,
    pub trace: u64,
    pub time: Duration,
    pub entries: u64,
    pub faults: Vec<&'static str>,
}

#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub problems: Vec<String>,
    pub log: Vec<String>,
    pub faults: Vec<&'static str>,
}

const PATIENCE: Duration = Duration::from_secs(600);

struct Run {
    seed: u64,
    world: World,
    /// Primary, its follower, and the follower's follower.
    nodes: Vec<Node>,
    faults: Vec<&'static str>,
}

/// Runs one seed.
pub fn run(seed: u64, options: &Options) -> Result<Report, Box<Failure>> {
    let world = World::new(seed, NetOptions::default());
    let primary = Node::new(&world, FaultyDisk::new(seed), false);
    let (first, second) = (FaultyDisk::new(seed ^ 0xa5a5), FaultyDisk::new(seed ^ 0x5a5a));
    let follower = Node::follower(&world, first, 27018, primary.addr());
    let chained = Node::follower(&world, second, 27019, follower.addr());
    let mut run = Run { seed, world, nodes: vec![primary, follower, chained], faults: Vec::new() };
    run.nodes[0].boot();
    run.world.sim.run_for(Duration::from_millis(500));
    let stop = Arc::new(AtomicBool::new(false));
    let people = run.world.sim.start_process();
    for user in 0..options.users {
        let env = run.world.env(people, run.nodes[0].disk.clone());
        let writing = users::run(env, run.nodes[0].addr(), (user, options.pause_ms), stop.clone());
        run.world.sim.spawn(people, "user", writing);
    }
    run.world.net.set_options(NetOptions { break_ppm: options.break_ppm, ..NetOptions::default() });
    let wait = run.world.sim.below(options.between_ms * 2);
    run.world.sim.run_for(Duration::from_millis(wait));
    run.nodes[1].boot();
    run.nodes[2].boot();
    for _ in 0..options.faults {
        let wait = run.world.sim.below(options.between_ms * 2);
        run.world.sim.run_for(Duration::from_millis(wait));
        run.fault()?;
    }
    stop.store(true, Relaxed);
    run.world.net.set_options(NetOptions::default());
    run.world.sim.run_for(Duration::from_secs(2));
    run.world.sim.kill(people);
    run.check()
}

impl Run {
    fn fail(&self, problems: Vec<String>) -> Box<Failure> {
        let (seed, faults) = (self.seed, self.faults.clone());
        Box::new(Failure { seed, problems, log: self.world.log_lines(), faults })
    }
    fn stuck(&self, what: &str, why: Stuck) -> Box<Failure> {
        let exits: Vec<_> = self.nodes.iter().map(Node::exit).collect();
        self.fail(vec![format!("{what}: {why:?}; exits {exits:?}")])
    }

    fn fault(&mut self) -> Result<(), Box<Failure>> {
        let who = 1 + self.world.sim.below(2) as usize;
        if let Some(end) = self.nodes.iter().find_map(Node::exit) {
            return Err(self.fail(vec![format!("a node ended by itself: {end:?}")]));
        }
        let fault = match self.world.sim.below(6) {
            0 | 1 => {
                self.nodes[who].lose_power();
                self.nodes[who].boot();
                "power loss"
            }
            2 | 3 => {
                self.nodes[who].kill();
                self.nodes[who].boot();
                "kill"
            }
            4 => {
                self.nodes[who].kill();
                let wait = self.world.sim.below(3000);
                self.world.sim.run_for(Duration::from_millis(wait));
                self.nodes[who].boot();
                "long absence"
            }
            _ => {
                self.restart_primary()?;
                "primary restarts"
            }
        };
        self.faults.push(fault);
        Ok(())
    }

    /// Cleanly: what it wrote and showed to others must not be lost, or they would have to roll back.
    fn restart_primary(&mut self) -> Result<(), Box<Failure>> {
        let process = self.world.sim.start_process();
        let env = self.world.env(process, self.nodes[0].disk.clone());
        let asking = checks::shut_down(env, self.nodes[0].addr());
        let asked = self.world.sim.block_on(process, PATIENCE, asking);
        self.world.sim.kill(process);
        asked.map_err(|why| self.stuck("shutdown", why))?;
        let deadline = self.world.sim.now() + PATIENCE;
        while self.nodes[0].exit().is_none() && self.world.sim.now() < deadline {
            self.world.sim.run_for(Duration::from_millis(5));
        }
        match self.nodes[0].exit() {
            Some(crate::node::Exit::Clean) => self.nodes[0].boot(),
            other => return Err(self.fail(vec![format!("clean shutdown ended with {other:?}")])),
        }
        Ok(())
    }

    fn check(self) -> Result<Report, Box<Failure>> {
        let process = self.world.sim.start_process();
        let env = self.world.env(process, self.nodes[0].disk.clone());
        let addrs: Vec<String> = self.nodes.iter().map(Node::addr).collect();
        let found = Arc::new(Mutex::new(String::new()));
        let checking = checks::run(env, addrs, found.clone());
        match self.world.sim.block_on(process, PATIENCE, checking) {
            Err(why) => {
                let so_far = lock(&found).clone();
                Err(self.stuck(&format!("checking ({so_far})"), why))
            }
            Ok(Err(problems)) => Err(self.fail(problems)),
            Ok(Ok(entries)) => {
                let sim = &self.world.sim;
                let (seed, trace, time) = (self.seed, sim.trace(), sim.now());
                Ok(Report { seed, trace, time, entries, faults: self.faults })
            }
        }
    }
}
