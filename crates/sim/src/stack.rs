//! Work that stops in its middle: closures that a server hands to other threads run here on stacks of their own, on the
//! simulation's one thread.
//!
//! ```text
//!   task "offloaded" ── resume ──► closure … Disk call ── pause(so long) ──► back to the executor: others run,
//!                    ◄─────────── time passes, the process is killed ◄────── or the closure goes on where it stood
//! ```
//!
//! A closure that finds a lock taken gives its turn away, too. Who polls on the executor's own stack (a command, say) and
//! finds a lock taken cannot be set aside: the closures of its process go on in its place until the lock is free, as they
//! would on other threads while this one blocks.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// Machine words of a stack; untouched pages cost nothing.
const STACK_WORDS: usize = 512 * 1024;

/// Why a closure stopped running.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// It goes on after this time.
    Pause(Duration),
    /// It found a lock taken.
    Blocked,
    Done,
    Panicked(String),
}

thread_local! {
    /// Whether this thread runs on such a stack now.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    static TURN: RefCell<Option<Turn>> = const { RefCell::new(None) };
}

/// A stack, and what runs on it.
pub(crate) struct Stack {
    routine: generator::Generator<'static, (), ()>,
    next: Arc<Mutex<Option<Work>>>,
}

impl Stack {
    pub(crate) fn new() -> Stack {
        let next: Arc<Mutex<Option<Work>>> = Arc::default();
        let given = next.clone();
        let routine = generator::Gn::new_opt(STACK_WORDS, move || {
            loop {
                let work = given.lock().unwrap_or_else(PoisonError::into_inner).take();
                // Resumed without work: the stack is not wanted any more.
                let Some(work) = work else { return };
                let turn = match catch_unwind(AssertUnwindSafe(work)) {
                    Ok(()) => Turn::Done,
                    Err(why) => Turn::Panicked(words_of(&*why)),
                };
                leave(turn);
            }
        });
        Stack { routine, next }
    }
    pub(crate) fn give(&mut self, work: Work) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
    }
    /// Lets it run until it stops.
    pub(crate) fn resume(&mut self) -> Turn {
        INSIDE.set(true);
        self.routine.resume();
        INSIDE.set(false);
        TURN.take().unwrap_or(Turn::Done)
    }
    /// Frees it; nothing runs on it.
    pub(crate) fn end(mut self) {
        if !self.routine.is_done() {
            self.resume();
        }
    }
    /// Something runs on it that will never go on: its stack stays.
    pub(crate) fn abandon(self) {
        std::mem::forget(self);
    }
}

/// What a panic said.
pub(crate) fn words_of(why: &(dyn std::any::Any + Send)) -> String {
    let text = why.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| why.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

// The scoped form would have to be handed down to every disk call.
#[allow(deprecated)]
fn leave(turn: Turn) {
    TURN.set(Some(turn));
    generator::yield_with(());
}

/// Whether [`pause`] would stop anything. Not while a panic unwinds: its state belongs to the thread.
pub(crate) fn can_pause() -> bool {
    INSIDE.get() && !std::thread::panicking()
}
/// The closure that runs goes on after this time; others run meanwhile.
pub(crate) fn pause(d: Duration) {
    if can_pause() {
        leave(Turn::Pause(d));
    }
}
/// The closure that runs lets others go on; false when none runs.
pub(crate) fn give_turn_away() -> bool {
    let can = can_pause();
    if can {
        leave(Turn::Blocked);
    }
    can
}
