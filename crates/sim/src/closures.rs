//! What processes have handed to other threads: closures under way, each on a stack of its own.

use crate::executor::{Core, ProcessId, Sleep, lock};
use crate::stack::{self, Stack, Turn, Work};
use pando_env::BoxFuture;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

/// Stacks kept for the next closures.
const IDLE_MAX: usize = 64;
/// Turns of one closure; more is an endless loop.
const TURNS_MAX: u64 = 5_000_000;
/// Turns that the closures of a killed process get to find out that their disk is gone.
const LAST_TURNS: u32 = 10_000;
/// Before a closure that found a lock taken looks again.
const BLOCKED: Duration = Duration::from_micros(20);

struct Running {
    process: ProcessId,
    stack: Stack,
    turns: u64,
}

#[derive(Default)]
struct State {
    next: u64,
    /// Away while it runs.
    running: BTreeMap<u64, Running>,
    /// Ended in another's place; its task does not know yet.
    ended: BTreeMap<u64, Turn>,
    idle: Vec<Stack>,
}

#[derive(Default)]
pub(crate) struct Closures(Mutex<State>);

impl Closures {
    pub(crate) fn begin(&self, process: ProcessId, work: Work) -> u64 {
        let mut state = lock(&self.0);
        let mut stack = state.idle.pop().unwrap_or_else(Stack::new);
        stack.give(work);
        state.next += 1;
        let id = state.next;
        state.running.insert(id, Running { process, stack, turns: 0 });
        id
    }
    pub(crate) fn resume(&self, id: u64) -> Turn {
        let mut state = lock(&self.0);
        if let Some(turn) = state.ended.remove(&id) {
            return turn;
        }
        let Some(mut running) = state.running.remove(&id) else { return Turn::Blocked };
        drop(state);
        let turn = running.stack.resume();
        running.turns += 1;
        assert!(running.turns < TURNS_MAX, "a closure does not end");
        let mut state = lock(&self.0);
        if !matches!(turn, Turn::Done | Turn::Panicked(_)) {
            state.running.insert(id, running);
        } else if state.idle.len() < IDLE_MAX {
            state.idle.push(running.stack);
        } else {
            drop(state);
            running.stack.end();
        }
        turn
    }
    fn of(&self, process: Option<ProcessId>) -> Vec<u64> {
        let state = lock(&self.0);
        let of = state.running.iter().filter(|(_, r)| process.is_none_or(|p| p == r.process));
        of.map(|(id, _)| *id).collect()
    }
    /// Each closure of a process goes on for a turn; false when there is none.
    fn go_on(&self, process: Option<ProcessId>) -> bool {
        let ids = self.of(process);
        for id in &ids {
            let turn = self.resume(*id);
            if matches!(turn, Turn::Done | Turn::Panicked(_)) {
                lock(&self.0).ended.insert(*id, turn);
            }
        }
        !ids.is_empty()
    }
    /// The process is dead, and so is its disk: its closures come to their end.
    pub(crate) fn end(&self, process: ProcessId) {
        for _ in 0..LAST_TURNS {
            let ids = self.of(Some(process));
            if ids.is_empty() {
                return;
            }
            ids.into_iter().for_each(|id| drop(self.resume(id)));
        }
        let left = self.of(Some(process));
        let mut state = lock(&self.0);
        left.iter().filter_map(|id| state.running.remove(id)).for_each(|r| r.stack.abandon());
        drop(state);
        panic!("{} closures of a killed process do not end", left.len());
    }
}

impl Drop for Closures {
    fn drop(&mut self) {
        let state = std::mem::take(&mut *lock(&self.0));
        state.idle.into_iter().for_each(Stack::end);
        state.running.into_values().for_each(|r| r.stack.abandon());
    }
}

thread_local! {
    static WORLD: RefCell<Weak<Core>> = const { RefCell::new(Weak::new()) };
}

/// On this thread, whoever finds a lock taken lets the closures of this world go on.
pub(crate) fn let_go_on_in(core: &Arc<Core>) {
    WORLD.set(Arc::downgrade(core));
    pando_base::sync::let_others_go_on_by(|| {
        if stack::give_turn_away() {
            return true;
        }
        let Some(core) = WORLD.with_borrow(Weak::upgrade) else { return false };
        core.closures.go_on(core.current())
    });
}

/// Runs `work` to its end, with pauses; what it said if it panicked.
pub(crate) async fn run(core: &Arc<Core>, process: ProcessId, work: Work) -> Result<(), String> {
    let id = core.closures.begin(process, work);
    loop {
        match core.closures.resume(id) {
            Turn::Pause(d) => core.sleep(d).await,
            Turn::Blocked => core.sleep(BLOCKED).await,
            Turn::Done => return Ok(()),
            Turn::Panicked(why) => return Err(why),
        }
    }
}

/// A future whose polls may stop in their middle: what it does between two awaits is interrupted as a closure is.
pub(crate) struct Interruptible {
    core: Arc<Core>,
    process: ProcessId,
    /// Away while it is being polled.
    inner: Arc<Mutex<Option<BoxFuture<'static, ()>>>>,
    /// The poll under way, and until when it pauses.
    poll: Option<(u64, Option<Sleep>)>,
}

impl Interruptible {
    pub(crate) fn new(core: Arc<Core>, process: ProcessId, inner: BoxFuture<'static, ()>) -> Interruptible {
        Interruptible { core, process, inner: Arc::new(Mutex::new(Some(inner))), poll: None }
    }
}

impl Future for Interruptible {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut interrupted = false;
        let (id, mut nap) = this.poll.take().inspect(|_| interrupted = true).unwrap_or_else(|| {
            let (inner, waker) = (this.inner.clone(), cx.waker().clone());
            let work = move || {
                let taken = lock(&inner).take();
                let Some(mut future) = taken else { return };
                if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                    *lock(&inner) = Some(future);
                }
            };
            (this.core.closures.begin(this.process, Box::new(work)), None)
        });
        loop {
            if let Some(nap) = &mut nap
                && Pin::new(nap).poll(cx).is_pending()
            {
                break;
            }
            match this.core.closures.resume(id) {
                Turn::Pause(d) => nap = Some(this.core.sleep(d)),
                Turn::Blocked => nap = Some(this.core.sleep(BLOCKED)),
                Turn::Panicked(why) => std::panic::resume_unwind(Box::new(why)),
                Turn::Done if lock(&this.inner).is_none() => return Poll::Ready(()),
                Turn::Done => {
                    // Whoever woke it in between has woken the wrong poll.
                    if interrupted {
                        cx.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
            }
            interrupted = true;
        }
        this.poll = Some((id, nap));
        Poll::Pending
    }
}
