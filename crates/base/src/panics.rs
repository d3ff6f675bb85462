//! What a panic ends.
//!
//! A panic means that an invariant is broken, and whatever it interrupts stands half done. In background work nobody
//! would do the rest: a member would keep its office without taking writes, or serve old data for ever. So a panic ends
//! the process, and recovery starts from what is on disk.
//!
//! ```text
//!   task ── fence(request) ── indivisible() ── panic      the process ends: rows are in place, their log slots are open
//!                    └─────── panic                       the connection ends: what a request reads, parses, plans is its own
//!     └────── panic                                       the process ends
//! ```
//! Whoever runs the process asks [`is_fatal`] in its panic hook, while the broken state is still on the stack. Nothing
//! here ends anything: in tests and in the simulator a panic unwinds.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll};

thread_local! {
    static WORK: Cell<Work> = const { Cell::new(Work { task: "", fenced: false }) };
    static INDIVISIBLE: Cell<u32> = const { Cell::new(0) };
}

/// What a thread does now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// The task's name; empty outside any.
    pub task: &'static str,
    fenced: bool,
}

/// Of this thread.
pub fn work() -> Work {
    WORK.get()
}

/// Whether a panic at this place ends the process.
pub fn is_fatal() -> bool {
    !WORK.get().fenced || INDIVISIBLE.get() > 0
}

/// Until it is dropped, this thread does other work.
pub struct Entered {
    before: Work,
    indivisible: u32,
}

impl Work {
    /// A task that nobody fences.
    pub fn of_task(task: &'static str) -> Work {
        Work { task, fenced: false }
    }
    /// Also carries it over to another thread.
    pub fn enter(self) -> Entered {
        Entered { before: WORK.replace(self), indivisible: INDIVISIBLE.replace(0) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        WORK.set(self.before);
        INDIVISIBLE.set(self.indivisible);
    }
}

/// A task, or work of a request, whichever it was entered as.
pub struct Within<F> {
    work: Work,
    future: Pin<Box<F>>,
}

/// A task by name: a panic in it ends the process.
pub fn task<F: Future>(name: &'static str, future: F) -> Within<F> {
    Within { work: Work::of_task(name), future: Box::pin(future) }
}
/// Requests of one client: a panic ends that connection, except where a step is [`indivisible`].
pub fn fence<F: Future>(name: &'static str, future: F) -> Within<F> {
    Within { work: Work { task: name, fenced: true }, future: Box::pin(future) }
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = self.work.enter();
        self.future.as_mut().poll(cx)
    }
}

/// A step that must be done to its end, or the process with it.
#[must_use]
pub struct Indivisible(());

pub fn indivisible() -> Indivisible {
    INDIVISIBLE.set(INDIVISIBLE.get() + 1);
    Indivisible(())
}

impl Drop for Indivisible {
    fn drop(&mut self) {
        INDIVISIBLE.set(INDIVISIBLE.get().saturating_sub(1));
    }
}

/// What is thrown when somebody finds an invariant broken: fatal everywhere, also for a request.
#[derive(Debug)]
pub struct Broken(pub String);

/// The state is not what every reader of it relies on.
#[cold]
#[track_caller]
pub fn broken(what: impl Into<String>) -> ! {
    std::panic::panic_any(Broken(what.into()))
}

/// For a lock: whoever held it last has panicked, so what it guards stands half done.
#[cold]
#[track_caller]
pub fn poisoned<G>(e: PoisonError<G>) -> G {
    if std::thread::panicking() {
        // The first panic has said what there is to say; a second one would hide it.
        return e.into_inner();
    }
    broken("a lock was held by something that panicked: what it guards may be half changed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn poll<F: Future>(f: F) -> Poll<F::Output> {
        std::pin::pin!(f).poll(&mut Context::from_waker(std::task::Waker::noop()))
    }

    #[test]
    fn only_what_a_request_reads_is_fenced() {
        assert!(is_fatal(), "nobody knows who this is");
        let seen = poll(fence("connection", async {
            let reading = is_fatal();
            let step = indivisible();
            let committing = is_fatal();
            drop(step);
            (work().task, reading, committing, is_fatal())
        }));
        assert_eq!(seen, Poll::Ready(("connection", false, true, false)));
        assert_eq!(
            poll(task("log flusher", async { (work().task, is_fatal()) })),
            Poll::Ready(("log flusher", true))
        );
        assert_eq!((work().task, is_fatal()), ("", true));
    }

    #[test]
    fn a_panic_on_the_way_leaves_the_thread_as_it_was() {
        let unwound = std::panic::catch_unwind(|| {
            poll(fence("connection", async {
                let _step = indivisible();
                panic!("half done");
            }))
        });
        assert!(unwound.is_err());
        let after = poll(fence("connection", async { is_fatal() }));
        assert_eq!(after, Poll::Ready(false));
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // a lock is poisoned by another thread only
    fn a_lock_left_by_a_panic_is_a_broken_invariant_for_the_next_who_takes_it() {
        let lock = Arc::new(Mutex::new(0));
        let holder = lock.clone();
        let left = std::thread::spawn(move || {
            let _held = holder.lock().unwrap_or_else(poisoned);
            panic!("half done");
        });
        assert!(left.join().is_err());
        let found = std::panic::catch_unwind(|| *lock.lock().unwrap_or_else(poisoned)).unwrap_err();
        assert!(found.is::<Broken>());
    }
}
