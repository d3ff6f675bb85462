//! A real set of three members under faults: elections, the data path and clients, all of it the server's own code.
//!
//! Users insert with `w: "majority"` wherever the primary is; members are killed or lose power, the primary above all.
//! While that goes on nobody may be primary in a term that has one already; after everything has healed, every
//! acknowledged write must be there and the members must agree.
//!
//! A member whose history has parted from the set's stops (rolling back is not built): it comes back with an empty
//! disk and copies the set again.

mod acknowledged;
mod one_primary;

use crate::client::Client;
use crate::executor::lock;
use crate::node::Exit;
use crate::{FaultyDisk, NetOptions, Node, World, replication};
use acknowledged::Acknowledged;
use one_primary::Primaries;
use pando_bson::{Bson, Document, doc};
use pando_env::Env;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MEMBERS: u16 = 3;
const PATIENCE: Duration = Duration::from_secs(900);

/// How long and how wild.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub users: i64,
    pub faults: u32,
    /// Mean virtual time between two faults.
    pub between_ms: u64,
    /// Of a million writes to a connection, so many break it.
    pub break_ppm: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { users: 2, faults: 5, between_ms: 6000, break_ppm: 50 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub trace: u64,
    pub time: Duration,
    pub acknowledged: usize,
    /// Terms that had a primary.
    pub terms: usize,
    pub faults: Vec<&'static str>,
}

#[derive(Debug)]
pub struct Failure {
    pub problems: Vec<String>,
    pub log: Vec<String>,
    pub faults: Vec<&'static str>,
}

struct Run {
    world: World,
    nodes: Vec<Node>,
    faults: Vec<&'static str>,
    acknowledged: Arc<Mutex<Acknowledged>>,
    primaries: Arc<Mutex<Primaries>>,
}

/// Runs one seed.
pub fn run(seed: u64, options: &Options) -> Result<Report, Box<Failure>> {
    let world = World::new(seed, NetOptions::default());
    let member = |i: u16| {
        let mut node = Node::member(&world, FaultyDisk::new(seed ^ u64::from(i) << 32), 27017 + i);
        node.boot();
        node
    };
    let nodes = (0..MEMBERS).map(member).collect();
    let (acknowledged, primaries) = (Arc::default(), Arc::default());
    let mut run = Run { world, nodes, faults: Vec::new(), acknowledged, primaries };
    run.initiate()?;
    let stop = Arc::new(AtomicBool::new(false));
    let people = run.world.sim.start_process();
    let addrs = run.addrs();
    for user in 0..options.users {
        let env = run.env(people);
        let writing = acknowledged::write(env, addrs.clone(), user, run.acknowledged.clone(), stop.clone());
        run.world.sim.spawn(people, "user", writing);
    }
    let watching = one_primary::watch(run.env(people), addrs, run.primaries.clone());
    run.world.sim.spawn(people, "watcher", watching);
    run.world.net.set_options(NetOptions { break_ppm: options.break_ppm, ..NetOptions::default() });
    for _ in 0..options.faults {
        let wait = run.world.sim.below(options.between_ms * 2);
        run.world.sim.run_for(Duration::from_millis(wait));
        run.fault()?;
    }
    run.world.net.set_options(NetOptions::default());
    run.world.sim.run_for(Duration::from_secs(20));
    run.revive()?;
    stop.store(true, Relaxed);
    run.world.sim.run_for(Duration::from_secs(25));
    run.revive()?;
    run.check(people)
}

impl Run {
    fn env(&self, process: crate::ProcessId) -> Env {
        self.world.env(process, self.nodes[0].disk.clone())
    }
    fn addrs(&self) -> Vec<String> {
        self.nodes.iter().map(Node::addr).collect()
    }
    fn fail(&self, problems: Vec<String>) -> Box<Failure> {
        Box::new(Failure { problems, log: self.world.log_lines(), faults: self.faults.clone() })
    }

    fn initiate(&self) -> Result<(), Box<Failure>> {
        let process = self.world.sim.start_process();
        let env = self.env(process);
        let addrs = self.addrs();
        let asking = async move {
            env.clock.sleep(Duration::from_millis(200)).await;
            let mut c = connected(&env, &addrs[0]).await;
            let members: Vec<Bson> = addrs
                .iter()
                .enumerate()
                .map(|(i, host)| doc! { "_id": i as i32, "host": host.as_str() }.into())
                .collect();
            let mut config = doc! { "_id": "rs0" };
            config.push("members", members);
            let mut body = Document::new();
            body.push("replSetInitiate", config);
            body.push("$db", "admin");
            let reply = c.command(&body.to_raw()).await.map_err(|e| e.to_string())?;
            if reply.get("ok").is_some_and(|v| v.is_truthy()) { Ok(()) } else { Err(reply.to_string()) }
        };
        let done = self.world.sim.block_on(process, PATIENCE, asking);
        self.world.sim.kill(process);
        match done {
            Ok(Ok(())) => Ok(()),
            other => Err(self.fail(vec![format!("replSetInitiate: {other:?}")])),
        }
    }

    /// One member at a time: the other two are a majority.
    fn fault(&mut self) -> Result<(), Box<Failure>> {
        self.revive()?;
        let anyone = self.world.sim.below(u64::from(MEMBERS)) as usize;
        let primary = lock(&self.primaries).last();
        let who = if self.world.sim.below(3) > 0 { primary.unwrap_or(anyone) } else { anyone };
        let absent = self.world.sim.below(2) == 0;
        let power = self.world.sim.below(2) == 0;
        if power {
            self.nodes[who].lose_power();
        } else {
            self.nodes[who].kill();
        }
        if absent {
            let wait = self.world.sim.below(15_000);
            self.world.sim.run_for(Duration::from_millis(wait));
        }
        self.nodes[who].boot();
        self.faults.push(match (power, absent) {
            (true, true) => "power loss, absence",
            (true, false) => "power loss",
            (false, true) => "kill, absence",
            (false, false) => "kill",
        });
        Ok(())
    }

    /// A member that stopped because it would have to roll back starts over with an empty disk.
    fn revive(&mut self) -> Result<(), Box<Failure>> {
        for i in 0..self.nodes.len() {
            match self.nodes[i].exit() {
                None => continue,
                Some(Exit::Failed(why)) if why.contains("parted from ours") => {}
                Some(other) => return Err(self.fail(vec![format!("member {i} ended by itself: {other:?}")])),
            }
            let seed = self.world.sim.below(u64::MAX);
            self.nodes[i].disk = Arc::new(FaultyDisk::new(seed));
            self.nodes[i].boot();
            self.faults.push("copied anew");
        }
        Ok(())
    }

    fn check(self, people: crate::ProcessId) -> Result<Report, Box<Failure>> {
        let sim = self.world.sim.clone();
        let mut problems = lock(&self.primaries).problems();
        let process = sim.start_process();
        let env = self.env(process);
        let addrs = self.addrs();
        let acknowledged = self.acknowledged.clone();
        let stage = Arc::new(Mutex::new(String::new()));
        let told = stage.clone();
        let checking = async move {
            let at = primary_of(&env, &addrs).await;
            let mut order = vec![addrs[at].clone()];
            order.extend(addrs.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, a)| a.clone()));
            let mut c = connected(&env, &order[0]).await;
            let mut problems = acknowledged::check(&mut c, &acknowledged).await;
            let agreed = replication::checks::run(env, order, told).await;
            problems.extend(agreed.err().into_iter().flatten());
            problems
        };
        match sim.block_on(process, PATIENCE, checking) {
            Ok(found) => problems.extend(found),
            Err(why) => {
                let exits: Vec<_> = self.nodes.iter().map(Node::exit).collect();
                problems.push(format!("no agreement: {why:?} {:?} exits {exits:?}", lock(&stage)));
            }
        }
        sim.kill(people);
        if !problems.is_empty() {
            return Err(self.fail(problems));
        }
        let (acknowledged, terms) = (lock(&self.acknowledged).len(), lock(&self.primaries).terms());
        Ok(Report { trace: sim.trace(), time: sim.now(), acknowledged, terms, faults: self.faults })
    }
}

const PAUSE: Duration = Duration::from_millis(50);

async fn connected(env: &Env, addr: &str) -> Client {
    loop {
        if let Ok(c) = Client::connect(env, addr).await {
            return c;
        }
        env.clock.sleep(PAUSE).await;
    }
}

/// What `hello` says at `addr`, if anything within a second.
async fn hello(env: &Env, addr: &str) -> Option<pando_bson::DocBuf> {
    let body = doc! { "hello": 1, "$db": "admin" }.to_raw();
    let asking = async { Client::connect(env, addr).await.ok()?.command(&body).await.ok() };
    env.timeout(Duration::from_secs(1), asking).await?
}

/// The member that takes writes.
async fn primary_of(env: &Env, addrs: &[String]) -> usize {
    loop {
        for (i, addr) in addrs.iter().enumerate() {
            let hello = hello(env, addr).await;
            if hello.is_some_and(|h| h.get("isWritablePrimary").is_some_and(|v| v.is_truthy())) {
                return i;
            }
        }
        env.clock.sleep(PAUSE).await;
    }
}
