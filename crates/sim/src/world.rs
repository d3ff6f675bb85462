//! A simulated machine as services see it: an [`Env`] over the executor, the network and a faulty disk.

use crate::executor::{Core, ProcessId, Sim, YieldNow, lock};
use crate::links::Machine;
use crate::net::{NetOptions, SimNet};
use pando_env::log::{LogSink, Record, Severity};
use pando_env::{BoxFuture, Clock, Component, Disk, Env, Log, Spawn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Wall clock at the start: 2026-01-01T00:00:00Z.
const EPOCH_MS: i64 = 1_767_225_600_000;
/// Log lines kept for the report of a failure.
const LINES_KEPT: usize = 400;

/// One world: executor and network, from which processes get their environments.
#[derive(Clone)]
pub struct World {
    pub sim: Sim,
    pub net: SimNet,
    lines: Arc<Lines>,
    skews: Arc<Mutex<BTreeMap<Machine, Arc<AtomicI64>>>>,
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
        let lines =
            Arc::new(Lines { core: sim.core.clone(), kept: Mutex::default(), watched: Mutex::default() });
        World { sim, net, lines, skews: Arc::default() }
    }
    /// The environment of a process with this disk.
    pub fn env(&self, process: ProcessId, disk: Arc<dyn Disk>) -> Env {
        self.env_at(Machine::OUTSIDE, process, disk)
    }
    /// The environment of a process on a machine.
    pub fn env_at(&self, machine: Machine, process: ProcessId, disk: Arc<dyn Disk>) -> Env {
        let core = self.sim.core.clone();
        let lines = Arc::new(LinesOf { lines: self.lines.clone(), machine });
        Env {
            clock: Arc::new(SimClock { core: core.clone(), skew_ms: self.skew_of(machine) }),
            rng: core.clone(),
            disk,
            net: Arc::new(self.net.at(machine)),
            tasks: Arc::new(SimTasks { core, process }),
            log: Log::new(lines, "main"),
        }
    }
    fn skew_of(&self, machine: Machine) -> Arc<AtomicI64> {
        lock(&self.skews).entry(machine).or_default().clone()
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
    /// A task of its own that runs the work in one piece after a while: it happens even if nobody waits for it.
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let done = pando_env::sync::Notify::new();
        let seen = done.version();
        let (core, finished) = (self.core.clone(), done.clone());
        self.core.spawn(
            self.process,
            "offloaded",
            Box::pin(async move {
                core.sleep(Duration::from_micros(core.rng.below(500))).await;
                work();
                finished.bump();
            }),
        );
        Box::pin(done.changed(seen))
    }
    fn yield_now(&self) -> BoxFuture<'static, ()> {
        Box::pin(YieldNow(false))
    }
}

/// Keeps the latest log lines.
struct Lines {
    core: Arc<Core>,
    kept: Mutex<VecDeque<String>>,
    watched: Mutex<(BTreeSet<i32>, Vec<Line>)>,
}

/// The log of one machine.
struct LinesOf {
    lines: Arc<Lines>,
    machine: Machine,
}

impl LogSink for LinesOf {
    /// Connections come and go too often to be of interest.
    fn enabled(&self, component: Component, severity: Severity) -> bool {
        !matches!(severity, Severity::Debug(_)) && component != Component::Network
    }
    fn write(&self, r: &Record<'_>) {
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
        if kept.len() == LINES_KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}
