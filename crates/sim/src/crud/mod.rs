//! Random CRUD on one server that dies again and again.
//!
//! A run has several lives. In each the server starts on what its disk kept, the checks compare data, log and
//! model, and users work until something ends it: lost power, a killed process, a failing sync, a full disk, or a
//! clean shutdown. Writes acknowledged with `j: true` or `w: "majority"` must be there in every later life.

mod builder;
mod checks;
mod client;
mod model;

use crate::client::Client;
use crate::executor::{ProcessId, Stuck, lock};
use crate::net::NetOptions;
use crate::node::{Exit, Node};
use crate::world::World;
use builder::Builder;
use client::{Shared, User};
use pando_bson::doc;
use pando_storage::testing::FaultyDisk;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// How much a run does.
#[derive(Clone, Copy, Debug)]
pub struct CrudOptions {
    pub lives: u32,
    pub users: i64,
    /// Longest life in virtual milliseconds.
    pub life_ms: u64,
    /// The disk loses what it said was synced: such runs must fail.
    pub lying_disk: bool,
}

impl Default for CrudOptions {
    fn default() -> Self {
        CrudOptions { lives: 5, users: 4, life_ms: 3000, lying_disk: false }
    }
}

/// What a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub seed: u64,
    /// Hash of everything that happened.
    pub trace: u64,
    /// Virtual time.
    pub time: Duration,
    pub polls: u64,
    /// Writes acknowledged.
    pub acknowledged: u64,
    /// How each life ended.
    pub ends: Vec<&'static str>,
}

/// A run that found something.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub problems: Vec<String>,
    pub log: Vec<String>,
    pub ends: Vec<&'static str>,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    PowerLoss,
    Kill,
    CleanShutdown,
    /// A sync fails, and so does every later one.
    SyncFails,
    /// A sync fails and loses what it should have kept; later ones succeed.
    SyncLoses,
    WriteFails,
    DiskFull,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            End::PowerLoss => "power loss",
            End::Kill => "kill",
            End::CleanShutdown => "clean shutdown",
            End::SyncFails => "sync fails",
            End::SyncLoses => "sync loses",
            End::WriteFails => "write fails",
            End::DiskFull => "disk full",
        }
    }
}

/// Limit for starts, checks and shutdowns.
const PATIENCE: Duration = Duration::from_secs(120);

struct Run {
    seed: u64,
    world: World,
    node: Node,
    shared: Shared,
    options: CrudOptions,
    ends: Vec<&'static str>,
}

/// Runs one seed.
pub fn run(seed: u64, options: &CrudOptions) -> Result<Report, Box<Failure>> {
    let world = World::new(seed, NetOptions::default());
    let mut node = Node::new(&world, FaultyDisk::new(seed), options.lying_disk);
    node.encrypted = seed % 4 == 2;
    let shared = Shared {
        addr: node.addr(),
        model: Arc::default(),
        problems: Arc::default(),
        stop: Arc::default(),
        lenient: Arc::new(AtomicBool::new(false)),
        big: Arc::new(AtomicI64::new(0)),
        building: Arc::default(),
    };
    let mut run = Run { seed, world, node, shared, options: *options, ends: Vec::new() };
    let mut on_durable_disk = true;
    for life in 0..=options.lives {
        run.node.boot();
        run.check(on_durable_disk)?;
        if life == options.lives {
            break;
        }
        let end = run.live()?;
        run.ends.push(end.name());
        // After a mere kill the operating system still holds what was written.
        on_durable_disk = end != End::Kill;
    }
    let sim = &run.world.sim;
    let acknowledged = lock(&run.shared.model).acks();
    Ok(Report { seed, trace: sim.trace(), time: sim.now(), polls: sim.polls(), acknowledged, ends: run.ends })
}

impl Run {
    fn fail(&self, mut problems: Vec<String>) -> Box<Failure> {
        problems.extend(lock(&self.shared.problems).drain(..));
        Box::new(Failure { seed: self.seed, problems, log: self.world.log_lines(), ends: self.ends.clone() })
    }
    fn stuck(&self, what: &str, why: Stuck) -> Box<Failure> {
        let exit = self.node.exit();
        let running = self.world.sim.running();
        self.fail(vec![format!("{what}: {why:?}; server exit {exit:?}; tasks {running:?}")])
    }

    /// Waits for the server and compares everything.
    fn check(&mut self, on_durable_disk: bool) -> Result<(), Box<Failure>> {
        let process = self.world.sim.start_process();
        let env = self.world.env(process, self.node.disk.clone());
        let addr = self.shared.addr.clone();
        let checking = async move {
            let mut client = loop {
                env.clock.sleep(Duration::from_millis(5)).await;
                let Ok(mut client) = Client::connect(&env, &addr).await else { continue };
                let hello = client.command(&doc! { "hello": 1, "$db": "admin" }.to_raw()).await;
                let ready = |h: pando_bson::DocBuf| {
                    h.get("isWritablePrimary").and_then(|v| v.as_bool()) == Some(true)
                };
                if hello.is_ok_and(ready) {
                    break client;
                }
            };
            checks::run(&mut client).await
        };
        let checked = self.world.sim.block_on(process, PATIENCE, checking);
        self.world.sim.kill(process);
        match checked {
            Err(why) => Err(self.stuck("the server does not come up", why)),
            Ok(Err(e)) => Err(self.fail(vec![format!("checks ended with {e}")])),
            Ok(Ok((found, mut problems))) => {
                problems.extend(lock(&self.shared.model).settle(&found, on_durable_disk));
                problems.extend(self.timestamp_problem());
                if problems.is_empty() { Ok(()) } else { Err(self.fail(problems)) }
            }
        }
    }

    /// Users work until the life ends.
    fn live(&mut self) -> Result<End, Box<Failure>> {
        let sim = self.world.sim.clone();
        let end = match sim.below(12) {
            0..=3 => End::PowerLoss,
            4 | 5 => End::Kill,
            6 | 7 => End::CleanShutdown,
            8 => End::SyncFails,
            9 => End::SyncLoses,
            10 => End::WriteFails,
            _ => End::DiskFull,
        };
        // In some lives connections break, now and then or all the time.
        let break_ppm = [0, 0, 500, 10_000][sim.below(4) as usize];
        self.world.net.set_options(NetOptions { break_ppm, ..NetOptions::default() });
        self.shared.stop = Arc::default();
        self.shared.lenient = Arc::new(AtomicBool::new(false));
        let people = sim.start_process();
        for owner in 1..=self.options.users {
            let env = self.world.env(people, self.node.disk.clone());
            sim.spawn(people, "user", User::run(env, owner, self.shared.clone()));
        }
        let env = self.world.env(people, self.node.disk.clone());
        sim.spawn(people, "builder", Builder::run(env, self.shared.clone()));
        sim.run_for(Duration::from_millis(1 + sim.below(self.options.life_ms)));
        if sim.below(2) == 0 {
            self.into_a_build();
        }
        lock(&self.shared.problems).extend(self.timestamp_problem());
        self.end_life(end, people)?;
        sim.kill(people);
        self.world.net.set_options(NetOptions::default());
        let none = lock(&self.shared.problems).is_empty();
        if none { Ok(end) } else { Err(self.fail(Vec::new())) }
    }

    fn timestamp_problem(&self) -> Option<String> {
        self.node.server()?.replication.timestamp_problem()
    }
    /// Lets time pass until an index build is some way on.
    fn into_a_build(&self) {
        let sim = &self.world.sim;
        let deadline = sim.now() + Duration::from_millis(500);
        while !self.shared.building.load(Relaxed) && sim.now() < deadline && sim.step() {}
        for _ in 0..sim.below(100) {
            sim.step();
        }
    }

    fn end_life(&mut self, end: End, people: ProcessId) -> Result<(), Box<Failure>> {
        let sim = self.world.sim.clone();
        match end {
            End::PowerLoss => self.node.lose_power(),
            End::Kill => self.node.kill(),
            End::CleanShutdown => {
                self.shared.stop.store(true, Relaxed);
                self.shut_down()?;
                sim.kill(people);
                lock(&self.shared.model).all_durable();
                // Whatever a clean shutdown did not write is gone for good.
                self.node.lose_power();
            }
            End::SyncFails | End::SyncLoses | End::WriteFails => {
                self.shared.lenient.store(true, Relaxed);
                match end {
                    End::SyncFails => self.node.disk.fail_sync_in(sim.below(4)),
                    End::SyncLoses => self.node.disk.lose_sync_in(sim.below(4)),
                    _ => self.node.disk.fail_write_in(sim.below(8)),
                }
                sim.run_for(Duration::from_secs(5));
                self.must_have_failed(end)?;
                if sim.below(2) == 0 {
                    self.node.lose_power();
                } else {
                    // The machine goes on, and its memory shows the next start what the disk has not got.
                    self.node.kill();
                    self.node.disk.mend();
                }
            }
            End::DiskFull => {
                self.shared.lenient.store(true, Relaxed);
                let used: usize = self.node.disk.paths().iter().map(|p| self.node.disk.file_len(p)).sum();
                self.node.disk.set_capacity(Some(used as u64 + sim.below(20_000)));
                sim.run_for(Duration::from_secs(5));
                self.must_have_failed(end)?;
                self.node.lose_power();
                if sim.below(2) == 0 {
                    // Nobody writes: what the model expects has not been compared with what is left.
                    sim.kill(people);
                    // A start on the full disk gets somewhere or not; it must harm nothing.
                    self.node.boot();
                    sim.run_for(Duration::from_secs(1));
                    self.node.lose_power();
                }
                self.node.disk.set_capacity(None);
            }
        }
        Ok(())
    }
    /// What the disk refused must have ended the process.
    fn must_have_failed(&self, end: End) -> Result<(), Box<Failure>> {
        match self.node.exit() {
            Some(Exit::Failed(_)) => Ok(()),
            other => Err(self.fail(vec![format!("{}, and the server went on: {other:?}", end.name())])),
        }
    }

    fn shut_down(&mut self) -> Result<(), Box<Failure>> {
        let sim = self.world.sim.clone();
        let process = sim.start_process();
        let env = self.world.env(process, self.node.disk.clone());
        let addr = self.shared.addr.clone();
        // The reply may or may not arrive.
        let asking = async move {
            if let Ok(mut c) = Client::connect(&env, &addr).await {
                let _ = c.command(&doc! { "shutdown": 1, "force": true, "$db": "admin" }.to_raw()).await;
            }
        };
        let asked = sim.block_on(process, PATIENCE, asking);
        sim.kill(process);
        asked.map_err(|why| self.stuck("shutdown", why))?;
        let deadline = sim.now() + PATIENCE;
        while self.node.exit().is_none() && sim.now() < deadline {
            sim.run_for(Duration::from_millis(5));
        }
        match self.node.exit() {
            Some(Exit::Clean) => Ok(()),
            other => Err(self.fail(vec![format!("clean shutdown ended with {other:?}")])),
        }
    }
}
