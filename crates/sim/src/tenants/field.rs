//! Six machines, two sets at most, and everything that is done to them: time passes, something breaks, everybody is looked at.

use super::board::Board;
use super::faults::Hit;
use super::side::Side;
use super::users::{Place, Users};
use super::{EACH, FIRST_CLIENT, Home, MEMBERS, agreement};
use crate::executor::lock;
use crate::links::Machine;
use crate::node::Node;
use crate::set::asking::{connected, primary_of};
use crate::set::broken::Broken;
use crate::set::{Failure, Options, lines};
use crate::world::Line;
use crate::{Exit, ProcessId, World};
use pando_bson::{Document, doc};
use pando_env::Env;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(300);
/// The longest between two looks.
pub(super) const LOOK_MS: u64 = 50;
/// What is under way is hit in its middle within this.
const SLICE: Duration = Duration::from_millis(1);
/// Polls that one second of a run may take on average: more is an endless loop.
const POLLS_A_SECOND: u64 = 40_000;
/// Polls that a run may take beyond that.
const POLLS_FREE: u64 = 4_000_000;

pub(super) struct Field {
    pub(super) options: Options,
    pub(super) world: World,
    pub(super) nodes: Vec<Node>,
    pub(super) sides: [Side; 2],
    pub(super) clients: Vec<Machine>,
    pub(super) operator: ProcessId,
    pub(super) broken: Broken,
    pub(super) hit: Option<Hit>,
    pub(super) board: Arc<Mutex<Board>>,
    pub(super) users: Users,
    /// Tenants go from this set to the other one.
    pub(super) from: Home,
    /// The primary of the set that takes tenants leads a part of it.
    pub(super) takers_lead: bool,
    /// Members who may lead what is under way.
    pub(super) stepping: std::ops::Range<usize>,
    /// How faults are called that hit it.
    pub(super) amid: &'static str,
    /// Its steps at which something broke.
    pub(super) steps: BTreeMap<u64, u32>,
    pub(super) elections: u64,
    pub(super) rollbacks: u64,
    /// Looks at all machines, besides the rules of a set.
    pub(super) looking: Box<dyn FnMut(&[Node], &[Line], &mut Vec<String>)>,
    /// What is told with a failure.
    pub(super) told: Box<dyn Fn() -> Vec<String>>,
}

impl Drop for Field {
    fn drop(&mut self) {
        self.world.sim.end();
    }
}

impl Field {
    pub(super) fn new(
        world: World,
        options: &Options,
        nodes: Vec<Node>,
        sides: [Side; 2],
        board: Board,
    ) -> Field {
        world.keep_lines(options.lines);
        world.watch_lines(&lines::WATCHED);
        Field {
            options: *options,
            nodes,
            sides,
            clients: (0..options.users).map(|u| Machine(FIRST_CLIENT + u as u16)).collect(),
            operator: world.sim.start_process(),
            broken: Broken::default(),
            hit: None,
            board: Arc::new(Mutex::new(board)),
            users: Users::default(),
            from: Home::First,
            takers_lead: false,
            stepping: 0..EACH,
            amid: "amid a split",
            steps: BTreeMap::new(),
            elections: 0,
            rollbacks: 0,
            looking: Box::new(|_, _, _| ()),
            told: Box::new(Vec::new),
            world,
        }
    }
    pub(super) fn env(&self, process: ProcessId) -> Env {
        self.env_of(process, FIRST_CLIENT - 1)
    }
    fn env_of(&self, process: ProcessId, machine: u16) -> Env {
        self.world.env_at(Machine(machine), process, self.nodes[0].disk.clone())
    }
    pub(super) fn addrs(&self) -> Vec<String> {
        self.nodes.iter().map(Node::addr).collect()
    }
    pub(super) fn now(&self) -> Duration {
        self.world.sim.now()
    }
    pub(super) fn stop_if(&self, problems: Vec<String>) -> Result<(), Box<Failure>> {
        if problems.is_empty() { Ok(()) } else { Err(self.fail(problems)) }
    }
    pub(super) fn fail(&self, problems: Vec<String>) -> Box<Failure> {
        let mut log = self.world.log_lines();
        for side in &self.sides {
            log.extend(side.watch.lines().map(|line| format!("machines from {}: {line}", side.first)));
        }
        log.extend((self.told)());
        Box::new(Failure { problems, log, faults: self.broken.counts.clone() })
    }

    /// What each user is given.
    pub(super) fn places(&self, people: ProcessId, stop: &Arc<AtomicBool>) -> Vec<Place> {
        let addrs = self.addrs();
        let place = |user: i64| Place {
            env: self.env_of(people, FIRST_CLIENT + user as u16),
            addrs: Home::BOTH.map(|home| addrs[home.machines()].to_vec()),
            user,
            pause_ms: self.options.pause_ms,
            stop: stop.clone(),
            board: self.board.clone(),
        };
        (0..self.options.users).map(place).collect()
    }

    /// Lets time pass, and looks at everybody again and again.
    pub(super) fn go_on(&mut self, how_long: Duration) -> Result<(), Box<Failure>> {
        let end = self.now() + how_long;
        while self.now() < end {
            let next = self.now() + Duration::from_millis(1 + self.below(LOOK_MS));
            while self.now() < next {
                let slice = if self.has_hit() { SLICE } else { next - self.now() };
                self.world.sim.run_for(slice);
                self.hit_if_due();
            }
            self.look()?;
        }
        Ok(())
    }
    pub(super) fn end_faults(&mut self) -> Result<(), Box<Failure>> {
        self.end_hit();
        self.machines().into_iter().for_each(|machine| self.world.set_skew(machine, 0));
        while !self.broken.due.is_empty() {
            self.heal_all();
            self.go_on(Duration::from_millis(LOOK_MS))?;
        }
        Ok(())
    }

    pub(super) fn look(&mut self) -> Result<(), Box<Failure>> {
        let mut problems = Vec::new();
        let told = self.world.take_lines();
        let count = |id: i32| told.iter().filter(|l| l.id == id).count() as u64;
        self.elections += count(lines::ELECTED);
        self.rollbacks += count(lines::ROLLED_BACK);
        let now = self.now();
        for side in &mut self.sides {
            side.look(&self.nodes, now, &told, &mut problems);
        }
        (self.looking)(&self.nodes, &told, &mut problems);
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
        problems.append(&mut lock(&self.board).problems);
        self.stop_if(problems)
    }

    /// The first of these machines is given a configuration; returns when all of them have what there is.
    pub(super) fn initiate(
        &mut self,
        who: std::ops::Range<usize>,
        config: Document,
        asks_for_logins: bool,
    ) -> Result<(), Box<Failure>> {
        let process = self.world.sim.start_process();
        let (env, count) = (self.env(process), who.len() as i32);
        let addrs = self.addrs()[who].to_vec();
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
                "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": { "w": count }, "$db": "d"
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
    /// Judges once everything has healed, within a time.
    pub(super) fn judge<F>(
        &mut self,
        within: Duration,
        judgement: impl FnOnce(agreement::Parts) -> F,
    ) -> Result<(), Box<Failure>>
    where
        F: Future<Output = Result<Vec<String>, String>> + Send + 'static,
    {
        let sim = self.world.sim.clone();
        let process = sim.start_process();
        let stage = Arc::new(Mutex::new(String::new()));
        let parts = agreement::Parts {
            env: self.env(process),
            addrs: self.addrs(),
            stage: stage.clone(),
            users: self.users.clone(),
        };
        let problems = match sim.block_on(process, within, judgement(parts)) {
            Ok(found) => found.unwrap_or_else(|why| vec![why]),
            Err(why) => {
                let exits: Vec<Option<Exit>> = self.nodes.iter().map(Node::exit).collect();
                vec![format!("no agreement: {why:?} {:?} exits {exits:?}", lock(&stage))]
            }
        };
        sim.kill(process);
        self.stop_if(problems)?;
        self.look()
    }
    /// How many machines there are.
    pub(super) fn nodes_of(seed: u64, node: impl Fn(u64, u16) -> Node) -> Vec<Node> {
        (0..MEMBERS as u16).map(|i| node(seed, i)).collect()
    }
}
