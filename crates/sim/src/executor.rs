//! One thread, virtual time, every choice from one seeded generator.
//!
//! Tasks belong to processes; [`Sim::kill`] ends a process at any moment by dropping its tasks between two
//! polls. Among the tasks that are ready the next one is drawn at random, so different seeds explore different
//! interleavings. A poll costs a few virtual microseconds (a task that only yields still lets time pass); when
//! nothing is ready, time jumps to the next timer. Everything that happens is folded into [`Sim::trace`]: two
//! runs of one seed must end with the same value.
//!
//! A process can be paused as by `SIGSTOP`: its tasks stay where they are while time goes on. Work that a process hands
//! to other threads runs on stacks of its own and stops at each disk call ([`crate::closures`]). A panic in a process that
//! is [contained](Sim::contain) is the end of that process, and is told by [`Sim::take_panics`].

use crate::closures::Closures;
use crate::stack::words_of;
use pando_env::{BoxFuture, Rng};
use pando_storage::testing::SeededRng;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A process: what is killed together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProcessId(u64);

struct Task {
    process: ProcessId,
    name: &'static str,
    /// Away while it is being polled.
    future: Option<BoxFuture<'static, ()>>,
    waker: Waker,
    queued: bool,
}

#[derive(Default)]
struct State {
    now: Duration,
    ready: Vec<u64>,
    tasks: BTreeMap<u64, Task>,
    timers: BTreeMap<(Duration, u64), Waker>,
    alive: BTreeSet<ProcessId>,
    /// Processes that stand still, and their tasks that would be ready.
    paused: BTreeMap<ProcessId, Vec<u64>>,
    /// Processes whose panics are their own end, not the simulation's.
    contained: BTreeSet<ProcessId>,
    panics: Vec<Panic>,
    /// Whose task is polled now.
    current: Option<ProcessId>,
    next_id: u64,
    trace: u64,
    polls: u64,
    /// Of each process that lives.
    polls_of: BTreeMap<ProcessId, u64>,
    /// So many machines work at the same time: a poll takes the world so much less time.
    processors: u32,
}

/// A panic that ended a process.
#[derive(Clone, Debug)]
pub struct Panic {
    pub process: ProcessId,
    pub task: &'static str,
    pub why: String,
}

pub(crate) struct Core {
    state: Mutex<State>,
    pub(crate) rng: SeededRng,
    pub(crate) closures: Closures,
}

pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    pub(crate) fn now(&self) -> Duration {
        lock(&self.state).now
    }
    pub(crate) fn is_alive(&self, process: ProcessId) -> bool {
        lock(&self.state).alive.contains(&process)
    }
    /// Whose task is polled now.
    pub(crate) fn current(&self) -> Option<ProcessId> {
        lock(&self.state).current
    }
    /// A panic in a task of `process`: its end when it is contained, otherwise the simulation's.
    pub(crate) fn panicked(
        &self,
        process: ProcessId,
        task: &'static str,
        why: Box<dyn std::any::Any + Send>,
    ) {
        let mut state = lock(&self.state);
        if !state.contained.contains(&process) {
            drop(state);
            resume_unwind(why);
        }
        state.panics.push(Panic { process, task, why: words_of(&*why) });
        drop(state);
        self.kill(process);
    }
    /// Ends a process: what it has handed to other threads finds its disk gone, then its tasks go.
    pub(crate) fn kill(&self, process: ProcessId) {
        lock(&self.state).alive.remove(&process);
        self.closures.end(process);
        let mut state = lock(&self.state);
        state.paused.remove(&process);
        state.polls_of.remove(&process);
        let ids: Vec<u64> =
            state.tasks.iter().filter(|(_, t)| t.process == process).map(|(id, _)| *id).collect();
        let dead: Vec<Task> = ids.iter().filter_map(|id| state.tasks.remove(id)).collect();
        state.ready.retain(|id| !ids.contains(id));
        drop(state);
        // Their destructors close streams, cancel timers and wake others.
        drop(dead);
    }
    pub(crate) fn spawn(
        self: &Arc<Self>,
        process: ProcessId,
        name: &'static str,
        future: BoxFuture<'static, ()>,
    ) {
        let mut state = lock(&self.state);
        if !state.alive.contains(&process) {
            // Dropped outside the lock: its destructors may call back.
            drop(state);
            return;
        }
        state.next_id += 1;
        let id = state.next_id;
        let waker = Waker::from(Arc::new(TaskWaker { core: self.clone(), id }));
        state.tasks.insert(id, Task { process, name, future: Some(future), waker, queued: true });
        state.ready.push(id);
    }
    pub(crate) fn sleep(self: &Arc<Self>, d: Duration) -> Sleep {
        let mut state = lock(&self.state);
        state.next_id += 1;
        let key = (state.now.saturating_add(d), state.next_id);
        Sleep { core: self.clone(), key }
    }
    /// Folds an event into the trace.
    pub(crate) fn note(&self, event: u64) {
        let mut state = lock(&self.state);
        let now = state.now.as_nanos() as u64;
        state.trace = mix(mix(state.trace, now), event);
    }
    fn wake(&self, id: u64) {
        let mut state = lock(&self.state);
        if let Some(task) = state.tasks.get_mut(&id).filter(|t| !t.queued) {
            task.queued = true;
            state.ready.push(id);
        }
    }
}

pub(crate) fn mix(hash: u64, n: u64) -> u64 {
    (hash ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

pub(crate) fn mix_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |h, w| mix(h, u64::from_le_bytes(*w)));
    rest.iter().fold(hash, |h, b| mix(h, u64::from(*b)))
}

struct TaskWaker {
    core: Arc<Core>,
    id: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.core.wake(self.id);
    }
}

/// Resolves at a moment of virtual time.
pub(crate) struct Sleep {
    core: Arc<Core>,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.core.state);
        if state.now >= self.key.0 {
            return Poll::Ready(());
        }
        state.timers.insert(self.key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        lock(&self.core.state).timers.remove(&self.key);
    }
}

/// Why a run ended before it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Nothing is ready and no timer will make it so.
    Deadlock,
    /// The time limit passed.
    TimeUp,
}

/// A simulated world.
#[derive(Clone)]
pub struct Sim {
    pub(crate) core: Arc<Core>,
}

impl Sim {
    pub fn new(seed: u64) -> Sim {
        let core = Core { state: Mutex::default(), rng: SeededRng::new(seed), closures: Closures::default() };
        let core = Arc::new(core);
        crate::closures::let_go_on_in(&core);
        Sim { core }
    }
    /// Virtual time since the start.
    pub fn now(&self) -> Duration {
        self.core.now()
    }
    /// Hash of everything that happened so far.
    pub fn trace(&self) -> u64 {
        lock(&self.core.state).trace
    }
    /// Polls so far.
    pub fn polls(&self) -> u64 {
        lock(&self.core.state).polls
    }
    /// Polls of one process so far: how much it has done.
    pub fn polls_of(&self, process: ProcessId) -> u64 {
        lock(&self.core.state).polls_of.get(&process).copied().unwrap_or(0)
    }
    /// From now on so many machines work at the same time: one alone takes a thread's time for each poll, a thousand share it.
    pub fn set_processors(&self, n: u32) {
        lock(&self.core.state).processors = n.max(1);
    }
    /// Uniform below `n`, from the world's own generator.
    pub fn below(&self, n: u64) -> u64 {
        self.core.rng.below(n)
    }
    pub fn start_process(&self) -> ProcessId {
        let mut state = lock(&self.core.state);
        state.next_id += 1;
        let id = ProcessId(state.next_id);
        state.alive.insert(id);
        id
    }
    pub fn spawn(
        &self,
        process: ProcessId,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        self.core.spawn(process, name, Box::pin(task));
    }
    /// Ends a process now: its tasks are dropped where they stand and it can start no more.
    pub fn kill(&self, process: ProcessId) {
        self.core.kill(process);
    }
    /// A panic in this process ends it alone from now on; [`Sim::take_panics`] tells.
    pub fn contain(&self, process: ProcessId) {
        lock(&self.core.state).contained.insert(process);
    }
    /// Panics of contained processes since the last call.
    pub fn take_panics(&self) -> Vec<Panic> {
        std::mem::take(&mut lock(&self.core.state).panics)
    }
    /// Nothing of a process runs until [`Sim::unpause`]; its timers and connections go on without it.
    pub fn pause(&self, process: ProcessId) {
        lock(&self.core.state).paused.entry(process).or_default();
    }
    pub fn unpause(&self, process: ProcessId) {
        let mut state = lock(&self.core.state);
        let ready = state.paused.remove(&process).unwrap_or_default();
        state.ready.extend(ready);
    }
    /// Ends all processes: what they hold of the world goes, and the world with it.
    pub fn end(&self) {
        let all = lock(&self.core.state).alive.clone();
        all.into_iter().for_each(|process| self.kill(process));
        let timers = std::mem::take(&mut lock(&self.core.state).timers);
        drop(timers);
    }
    /// Names of the tasks that still run, for diagnosis.
    pub fn running(&self) -> Vec<&'static str> {
        lock(&self.core.state).tasks.values().map(|t| t.name).collect()
    }

    /// One poll, or one jump to the next timer; false when neither is possible.
    pub fn step(&self) -> bool {
        let mut state = lock(&self.core.state);
        let due: Vec<_> = state.timers.range(..=(state.now, u64::MAX)).map(|(k, _)| *k).collect();
        if !due.is_empty() {
            let wakers: Vec<Waker> = due.iter().filter_map(|k| state.timers.remove(k)).collect();
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            return true;
        }
        if state.ready.is_empty() {
            let Some((at, _)) = state.timers.keys().next().copied() else { return false };
            state.now = state.now.max(at);
            return true;
        }
        let pick = self.core.rng.below(state.ready.len() as u64) as usize;
        let id = state.ready.swap_remove(pick);
        if !state.paused.is_empty()
            && let Some(process) = state.tasks.get(&id).map(|t| t.process)
            && let Some(standing) = state.paused.get_mut(&process)
        {
            standing.push(id);
            return true;
        }
        let cost = Duration::from_micros(1 + self.core.rng.below(20));
        let cost = cost / state.processors.max(1);
        state.now += cost;
        state.polls += 1;
        let now = state.now.as_nanos() as u64;
        state.trace = mix(mix(state.trace, now), id);
        let Some(task) = state.tasks.get_mut(&id) else { return true };
        task.queued = false;
        let Some(mut future) = task.future.take() else { return true };
        let (waker, process, name) = (task.waker.clone(), task.process, task.name);
        state.current = Some(process);
        *state.polls_of.entry(process).or_default() += 1;
        drop(state);

        let polled = catch_unwind(AssertUnwindSafe(|| {
            future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        }));

        let mut state = lock(&self.core.state);
        state.current = None;
        let done = match polled {
            Ok(done) => done,
            Err(why) => {
                drop(state);
                self.core.panicked(process, name, why);
                return true;
            }
        };
        if done {
            let task = state.tasks.remove(&id);
            drop(state);
            drop((task, future));
        } else if let Some(task) = state.tasks.get_mut(&id) {
            task.future = Some(future);
        } else {
            // Its process was killed from within.
            drop(state);
            drop(future);
        }
        true
    }

    /// Runs for so much virtual time (or until nothing can happen any more).
    pub fn run_for(&self, d: Duration) {
        let end = self.now() + d;
        while self.now() < end {
            if !self.step() {
                lock(&self.core.state).now = end;
                return;
            }
        }
    }

    /// Runs until `task` of `process` is done; others run along.
    pub fn block_on<T: Send + 'static>(
        &self,
        process: ProcessId,
        limit: Duration,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Stuck> {
        let slot = Arc::new(Mutex::new(None));
        let out = slot.clone();
        self.spawn(process, "main", async move {
            let value = task.await;
            *lock(&out) = Some(value);
        });
        let end = self.now() + limit;
        loop {
            if let Some(value) = lock(&slot).take() {
                return Ok(value);
            }
            if self.now() >= end {
                return Err(Stuck::TimeUp);
            }
            if !self.step() {
                return Err(Stuck::Deadlock);
            }
        }
    }
}

/// Lets every other ready task have its chance once.
pub(crate) struct YieldNow(pub(crate) bool);

impl Future for YieldNow {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Rng for Core {
    fn next_u64(&self) -> u64 {
        self.rng.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(sim: &Sim, process: ProcessId, log: &Arc<Mutex<Vec<u32>>>, who: u32) {
        let (core, log) = (sim.core.clone(), log.clone());
        sim.spawn(process, "counter", async move {
            for _ in 0..20 {
                core.sleep(Duration::from_millis(core.rng.below(3))).await;
                lock(&log).push(who);
            }
        });
    }
    fn run(seed: u64) -> (Vec<u32>, u64, Duration) {
        let sim = Sim::new(seed);
        let log = Arc::default();
        let p = sim.start_process();
        for who in 0..4 {
            counting(&sim, p, &log, who);
        }
        sim.run_for(Duration::from_secs(1));
        let out = lock(&log).clone();
        (out, sim.trace(), sim.now())
    }

    #[test]
    fn one_seed_gives_one_run_and_seeds_differ() {
        assert_eq!(run(1), run(1));
        assert_ne!(run(1).1, run(2).1);
        assert_ne!(run(1).0, run(2).0);
        assert_eq!(run(3).0.len(), 80);
    }

    #[test]
    fn a_killed_process_stops_where_it_stands_and_others_go_on() {
        let sim = Sim::new(5);
        let log = Arc::default();
        let (a, b) = (sim.start_process(), sim.start_process());
        counting(&sim, a, &log, 0);
        counting(&sim, b, &log, 1);
        sim.run_for(Duration::from_millis(5));
        sim.kill(a);
        let before = lock(&log).iter().filter(|w| **w == 0).count();
        sim.run_for(Duration::from_secs(1));
        let after = lock(&log).clone();
        assert_eq!(after.iter().filter(|w| **w == 0).count(), before);
        assert_eq!(after.iter().filter(|w| **w == 1).count(), 20);
        counting(&sim, a, &log, 2);
        sim.run_for(Duration::from_secs(1));
        assert!(!lock(&log).contains(&2), "a dead process starts nothing");
    }

    #[test]
    fn a_paused_process_stands_still_and_goes_on_later() {
        let sim = Sim::new(6);
        let log = Arc::default();
        let (a, b) = (sim.start_process(), sim.start_process());
        counting(&sim, a, &log, 0);
        counting(&sim, b, &log, 1);
        sim.run_for(Duration::from_millis(3));
        sim.pause(a);
        let of = |who: u32| lock(&log).iter().filter(|w| **w == who).count();
        let before = of(0);
        sim.run_for(Duration::from_secs(1));
        assert_eq!((of(0), of(1)), (before, 20));
        sim.unpause(a);
        sim.run_for(Duration::from_secs(1));
        assert_eq!(of(0), 20);
    }

    #[test]
    fn a_panic_is_the_end_of_a_contained_process_alone() {
        let sim = Sim::new(7);
        let log = Arc::default();
        let (a, b) = (sim.start_process(), sim.start_process());
        sim.contain(a);
        counting(&sim, a, &log, 0);
        counting(&sim, b, &log, 1);
        sim.spawn(a, "bad", async { panic!("no more") });
        sim.run_for(Duration::from_secs(1));
        let panics = sim.take_panics();
        assert_eq!(panics.iter().map(|p| (p.process, p.why.as_str())).collect::<Vec<_>>(), [(a, "no more")]);
        assert!(lock(&log).iter().filter(|w| **w == 0).count() < 20);
        assert_eq!(lock(&log).iter().filter(|w| **w == 1).count(), 20);
        sim.spawn(b, "bad", async { panic!("for all") });
        assert!(catch_unwind(AssertUnwindSafe(|| sim.run_for(Duration::from_secs(1)))).is_err());
    }

    #[test]
    fn waiting_for_nothing_is_a_deadlock_and_for_long_is_time_up() {
        let sim = Sim::new(1);
        let p = sim.start_process();
        let limit = Duration::from_secs(10);
        assert_eq!(sim.block_on(p, limit, std::future::pending::<()>()), Err(Stuck::Deadlock));
        let far = sim.core.sleep(Duration::from_secs(60));
        assert_eq!(sim.block_on(p, limit, far), Err(Stuck::TimeUp));
        let core = sim.core.clone();
        let spinning = async move {
            let until = core.now() + Duration::from_millis(1);
            while core.now() < until {
                YieldNow(false).await;
            }
            7
        };
        assert_eq!(sim.block_on(p, limit, spinning), Ok(7));
    }
}
