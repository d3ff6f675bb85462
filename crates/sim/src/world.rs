//! A simulated machine as services see it: an [`Env`] over the executor, the network and a faulty disk.

use crate::executor::{Core, ProcessId, Sim, YieldNow, lock};
use crate::net::{NetOptions, SimNet};
use pando_env::log::{LogSink, Record, Severity};
use pando_env::{BoxFuture, Clock, Component, Disk, Env, Log, Spawn};
use std::collections::VecDeque;
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
}

impl World {
    pub fn new(seed: u64, net: NetOptions) -> World {
        let sim = Sim::new(seed);
        let net = SimNet::new(sim.core.clone(), net);
        let lines = Arc::new(Lines { core: sim.core.clone(), kept: Mutex::default() });
        World { sim, net, lines }
    }
    /// The environment of a process on a machine with this disk.
    pub fn env(&self, process: ProcessId, disk: Arc<dyn Disk>) -> Env {
        let core = self.sim.core.clone();
        Env {
            clock: Arc::new(SimClock { core: core.clone() }),
            rng: core.clone(),
            disk,
            net: Arc::new(self.net.clone()),
            tasks: Arc::new(SimTasks { core, process }),
            log: Log::new(self.lines.clone(), "main"),
        }
    }
    /// The last log lines of all processes.
    pub fn log_lines(&self) -> Vec<String> {
        lock(&self.lines.kept).iter().cloned().collect()
    }
}

struct SimClock {
    core: Arc<Core>,
}

impl Clock for SimClock {
    fn mono(&self) -> Duration {
        self.core.now()
    }
    fn wall_ms(&self) -> i64 {
        EPOCH_MS + self.core.now().as_millis() as i64
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
}

impl LogSink for Lines {
    fn enabled(&self, _: Component, severity: Severity) -> bool {
        !matches!(severity, Severity::Debug(_))
    }
    fn write(&self, r: &Record<'_>) {
        let at = self.core.now().as_micros();
        let line = format!(
            "{at:>12} us {} {:8} {} {} {}",
            r.severity.text(),
            r.component.text(),
            r.ctx,
            r.msg,
            r.attr
        );
        let mut kept = lock(&self.kept);
        if kept.len() == LINES_KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}
