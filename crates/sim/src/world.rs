//! A simulated machine as services see it: an [`Env`] over the executor, the network and a faulty disk.

use crate::closures::{self, Interruptible};
use crate::disk::{Pace, SimDisk};
use crate::executor::{Core, ProcessId, Sim, YieldNow, lock};
use crate::links::Machine;
use crate::net::{NetOptions, SimNet};
use pando_env::log::{LogSink, Record, Severity};
use pando_env::{BoxFuture, Clock, Component, Disk, Env, Log, Spawn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Wall clock at the start: 2026-01-01T00:00:00Z.
const EPOCH_MS: i64 = 1_767_225_600_000;
/// Log lines kept for the report of a failure, unless somebody wants more ([`World::keep_lines`]).
const LINES_KEPT: usize = 400;

/// One world: executor and network, from which processes get their environments.
#[derive(Clone)]
pub struct World {
    pub sim: Sim,
    pub net: SimNet,
    lines: Arc<Lines>,
    skews: Arc<Mutex<BTreeMap<Machine, Arc<AtomicI64>>>>,
    paces: Arc<Mutex<BTreeMap<Machine, Arc<Pace>>>>,
}

/// A log line that somebody asked for ([`World::watch_lines`]).
#[derive(Clone, Debug)]
pub struct Line {
    pub machine: Machine,
    pub id: i32,
    pub attr: String,
}

impl World {
    pub fn new(seed: u64, net: NetOptions) -> World {
        let sim = Sim::new(seed);
        let net = SimNet::new(sim.core.clone(), net);
        let lines = Arc::new(Lines {
            core: sim.core.clone(),
            at_most: AtomicUsize::new(LINES_KEPT),
            kept: Mutex::default(),
            watched: Mutex::default(),
        });
        World { sim, net, lines, skews: Arc::default(), paces: Arc::default() }
    }
    /// The environment of a process with this disk.
    pub fn env(&self, process: ProcessId, disk: Arc<dyn Disk>) -> Env {
        self.env_at(Machine::OUTSIDE, process, disk)
    }
    /// The environment of a process on a machine.
    pub fn env_at(&self, machine: Machine, process: ProcessId, disk: Arc<dyn Disk>) -> Env {
        let core = self.sim.core.clone();
        let lines = Arc::new(LinesOf { lines: self.lines.clone(), machine, process });
        let disk = SimDisk::new(core.clone(), process, self.pace(machine), disk);
        Env {
            clock: Arc::new(SimClock { core: core.clone(), skew_ms: self.skew_of(machine) }),
            rng: core.clone(),
            disk: Arc::new(disk),
            net: Arc::new(self.net.at(machine)),
            tasks: Arc::new(SimTasks { core, process }),
            log: Log::new(lines, "main"),
        }
    }
    fn skew_of(&self, machine: Machine) -> Arc<AtomicI64> {
        lock(&self.skews).entry(machine).or_default().clone()
    }
    /// How fast the disk of a machine is.
    pub fn pace(&self, machine: Machine) -> Arc<Pace> {
        lock(&self.paces).entry(machine).or_default().clone()
    }
    /// Runs a process's main task, which is interrupted at its disk calls also between two awaits: a start reads and
    /// repairs what is on the disk.
    pub(crate) fn spawn_main(
        &self,
        process: ProcessId,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let main = Interruptible::new(self.sim.core.clone(), process, Box::pin(task));
        self.sim.spawn(process, name, main);
    }
    /// The wall clock of a machine is wrong by so much from now on.
    pub fn set_skew(&self, machine: Machine, ms: i64) {
        self.skew_of(machine).store(ms, Relaxed);
    }
    /// Lines with these ids are kept for [`World::take_lines`].
    pub fn watch_lines(&self, ids: &[i32]) {
        lock(&self.lines.watched).0.extend(ids);
    }
    /// The watched lines since the last call, in order.
    pub fn take_lines(&self) -> Vec<Line> {
        std::mem::take(&mut lock(&self.lines.watched).1)
    }
    /// So many of the last log lines are kept.
    pub fn keep_lines(&self, at_most: usize) {
        self.lines.at_most.store(at_most, Relaxed);
    }
    /// The last log lines of all processes.
    pub fn log_lines(&self) -> Vec<String> {
        lock(&self.lines.kept).iter().cloned().collect()
    }
}

struct SimClock {
    core: Arc<Core>,
    skew_ms: Arc<AtomicI64>,
}

impl Clock for SimClock {
    fn mono(&self) -> Duration {
        self.core.now()
    }
    fn wall_ms(&self) -> i64 {
        EPOCH_MS + self.core.now().as_millis() as i64 + self.skew_ms.load(Relaxed)
    }
    fn sleep(&self, d: Duration) -> BoxFuture<'static, ()> {
        Box::pin(self.core.sleep(d))
    }
}

struct SimTasks {
    core: Arc<Core>,
    process: ProcessId,
}

impl Spawn for SimTasks {
    fn spawn(&self, name: &'static str, task: BoxFuture<'static, ()>) {
        self.core.spawn(self.process, name, task);
    }
    /// A task of its own that runs the work after a while, with a pause at each disk call: it happens even if nobody
    /// waits for it.
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let done = pando_env::sync::Notify::new();
        let seen = done.version();
        let (core, process, finished) = (self.core.clone(), self.process, done.clone());
        self.core.spawn(
            process,
            "offloaded",
            Box::pin(async move {
                core.sleep(Duration::from_micros(core.rng.below(500))).await;
                if let Err(why) = closures::run(&core, process, work).await {
                    std::panic::resume_unwind(Box::new(why));
                }
                finished.bump();
            }),
        );
        Box::pin(done.changed(seen))
    }
    fn yield_now(&self) -> BoxFuture<'static, ()> {
        Box::pin(YieldNow(false))
    }
    fn block_for(&self, d: Duration) {
        crate::stack::pause(d);
    }
}

/// Keeps the latest log lines.
struct Lines {
    core: Arc<Core>,
    at_most: AtomicUsize,
    kept: Mutex<VecDeque<String>>,
    watched: Mutex<(BTreeSet<i32>, Vec<Line>)>,
}

/// The log of one machine.
struct LinesOf {
    lines: Arc<Lines>,
    machine: Machine,
    process: ProcessId,
}

impl LogSink for LinesOf {
    /// Connections come and go too often to be of interest.
    fn enabled(&self, component: Component, severity: Severity) -> bool {
        !matches!(severity, Severity::Debug(_)) && component != Component::Network
    }
    fn write(&self, r: &Record<'_>) {
        // A killed process says nothing, though its closures have yet to find that out.
        if !self.lines.core.is_alive(self.process) {
            return;
        }
        let machine = self.machine;
        let mut watched = lock(&self.lines.watched);
        if watched.0.contains(&r.id) {
            watched.1.push(Line { machine, id: r.id, attr: r.attr.to_owned() });
        }
        drop(watched);
        let at = self.lines.core.now().as_micros();
        let who = if machine == Machine::OUTSIDE { "-".to_owned() } else { machine.0.to_string() };
        let line = format!(
            "{at:>12} us {who} {} {:8} {} {} {}",
            r.severity.text(),
            r.component.text(),
            r.ctx,
            r.msg,
            r.attr
        );
        let mut kept = lock(&self.lines.kept);
        while kept.len() >= self.lines.at_most.load(Relaxed).max(1) {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}
