//! Whether the operation that this thread works for is still wanted, for code that never awaits.
//!
//! ```text
//!   command's future ─ poll ─► [within: this thread works for operation X]
//!                                 matcher, expressions, planner ... spend(steps) ─ now and then ─► X.check()
//!                                 a long stretch ─► X.step_aside()
//! ```
//!
//! A loop whose length a request decides spends a step per turn; once in a while the operation is asked whether it was
//! killed or is out of time. The answer stays: whoever cannot return an error gives up as soon as [`is_over`] says so
//! with any result, and whoever called it asks [`check`] before that result is used. Without an operation nobody is asked.
//!
//! Kept by thread rather than passed along, because comparisons, shapes and patterns deep down have no operation.

use crate::limits::{PATIENCE_ASIDE_MS_MAX, PATIENCE_LONG_TURN_MS, PATIENCE_STEPS};
use crate::{Error, Result};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What a thread works for.
pub trait Operation: Send + Sync {
    /// An error once it was killed or is out of time.
    fn check(&self) -> Result<()>;
    /// Monotonic.
    fn now(&self) -> Duration;
    /// This thread is busy for long: whatever waits for it goes elsewhere, within this time if it can.
    fn step_aside(&self, wait: Duration);
    /// Does nothing for a while.
    fn pause(&self, d: Duration);
}

/// One poll of an operation's future.
struct Turn {
    operation: Arc<dyn Operation>,
    began: Option<Duration>,
    /// When it steps aside next, after its beginning.
    aside: Duration,
    over: Option<Error>,
}

thread_local! {
    static SPENT: Cell<usize> = const { Cell::new(0) };
    static OVER: Cell<bool> = const { Cell::new(false) };
    static TURN: RefCell<Option<Turn>> = const { RefCell::new(None) };
}

/// Counts work, each step about as much as comparing two short values. True when it should end now.
#[inline]
pub fn is_over(steps: usize) -> bool {
    let spent = SPENT.get().saturating_add(steps);
    if spent < PATIENCE_STEPS {
        SPENT.set(spent);
        return OVER.get();
    }
    SPENT.set(0);
    ask()
}

/// The same as an error.
#[inline]
pub fn spend(steps: usize) -> Result<()> {
    if is_over(steps) { check() } else { Ok(()) }
}

/// The error if the work was given up.
#[inline]
pub fn check() -> Result<()> {
    if OVER.get() { Err(why()) } else { Ok(()) }
}

#[cold]
fn why() -> Error {
    let over = TURN.with_borrow(|turn| turn.as_ref().and_then(|t| t.over.clone()));
    over.unwrap_or_else(|| Error::internal("an operation is over that was none"))
}

#[cold]
fn ask() -> bool {
    if OVER.get() {
        return true;
    }
    let Some(operation) = TURN.with_borrow(|turn| turn.as_ref().map(|t| t.operation.clone())) else {
        return false;
    };
    let now = operation.now();
    let wait = TURN.with_borrow_mut(|turn| turn.as_mut().and_then(|t| t.long_for(now)));
    if let Some(wait) = wait {
        operation.step_aside(wait);
    }
    let Err(e) = operation.check() else { return false };
    TURN.with_borrow_mut(|turn| {
        if let Some(t) = turn {
            t.over = Some(e);
        }
    });
    OVER.set(true);
    true
}

impl Turn {
    /// How long to wait for others to take over, whenever the turn has lasted twice as long.
    fn long_for(&mut self, now: Duration) -> Option<Duration> {
        let ran = now.saturating_sub(*self.began.get_or_insert(now));
        if ran <= self.aside {
            return None;
        }
        self.aside = ran * 2;
        Some((ran / 5).min(Duration::from_millis(PATIENCE_ASIDE_MS_MAX)))
    }
}

/// A comparison of two short values through a few calls.
pub const COMPARE_STEPS: usize = 2;

/// Sorts, stable, as long as the operation is wanted; then gives up with the elements in any order.
///
/// `steps` is what one comparison costs.
pub fn sort_by<T>(v: &mut [T], steps: usize, mut cmp: impl FnMut(&T, &T) -> Ordering) -> Result<()> {
    until_over(|| {
        v.sort_by(|a, b| {
            spend_or_unwind(steps);
            cmp(a, b)
        });
    })
}

/// The same where equal elements may change places.
pub fn sort_unstable_by<T>(v: &mut [T], steps: usize, mut cmp: impl FnMut(&T, &T) -> Ordering) -> Result<()> {
    until_over(|| {
        v.sort_unstable_by(|a, b| {
            spend_or_unwind(steps);
            cmp(a, b)
        });
    })
}

/// What unwinds from a library that knows no other way out.
struct Over;

/// For what a library calls back: once the operation is over it goes back to [`until_over`] around the library.
#[inline]
pub fn spend_or_unwind(steps: usize) {
    if is_over(steps) {
        resume_unwind(Box::new(Over));
    }
}

/// Runs a library that is safe to leave by unwinding.
pub fn until_over<T>(work: impl FnOnce() -> T) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => check().map(|()| done),
        Err(cause) if cause.is::<Over>() => Err(why()),
        Err(cause) => resume_unwind(cause),
    }
}

/// A future that is polled on behalf of an operation.
pub struct Within<F> {
    operation: Arc<dyn Operation>,
    future: F,
}

pub fn within<F: Future + Unpin>(operation: Arc<dyn Operation>, future: F) -> Within<F> {
    Within { operation, future }
}

impl<F: Future + Unpin> Future for Within<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = Entered::new(self.operation.clone());
        Pin::new(&mut self.future).poll(cx)
    }
}

/// Restores, even after a panic, what the thread worked for before.
struct Entered(Option<Turn>);

impl Entered {
    fn new(operation: Arc<dyn Operation>) -> Entered {
        let aside = Duration::from_millis(PATIENCE_LONG_TURN_MS);
        let turn = Turn { operation, began: None, aside, over: None };
        OVER.set(false);
        Entered(TURN.replace(Some(turn)))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        OVER.set(self.0.as_ref().is_some_and(|t| t.over.is_some()));
        TURN.set(self.0.take());
    }
}

/// Runs `work` on behalf of an operation.
pub fn run_within<T>(operation: Arc<dyn Operation>, work: impl FnOnce() -> T) -> T {
    let _entered = Entered::new(operation);
    work()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Each look at the clock takes a millisecond; over after so many.
    struct Limited {
        ms: AtomicU64,
        limit: u64,
        asides: AtomicU64,
    }

    impl Operation for Limited {
        fn check(&self) -> Result<()> {
            if self.ms.load(Relaxed) < self.limit {
                return Ok(());
            }
            Err(Error::new(ErrorCode::MaxTimeMSExpired, "over"))
        }
        fn now(&self) -> Duration {
            Duration::from_millis(self.ms.fetch_add(1, Relaxed))
        }
        fn step_aside(&self, _: Duration) {
            self.asides.fetch_add(1, Relaxed);
        }
        fn pause(&self, _: Duration) {}
    }

    fn limited(limit: u64) -> Arc<Limited> {
        Arc::new(Limited { ms: AtomicU64::new(0), limit, asides: AtomicU64::new(0) })
    }

    #[test]
    fn work_ends_when_its_operation_is_over_and_other_work_goes_on() {
        let op = limited(100);
        let ended = run_within(op.clone(), || (0..u64::MAX).find(|_| is_over(1)).map(|_| check()));
        assert_eq!(ended.unwrap().unwrap_err().code, ErrorCode::MaxTimeMSExpired);
        assert!(check().is_ok(), "nobody asked this thread to work within limits");
        assert!((0..PATIENCE_STEPS * 3).all(|_| !is_over(1)));
        assert!(
            (4..8).contains(&op.asides.load(Relaxed)),
            "steps aside each time it has taken twice as long"
        );
    }

    #[test]
    fn a_sort_ends_with_its_operation_and_keeps_every_element() {
        let mixed: Vec<u64> = (0..200_000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).collect();
        let mut sorted = mixed.clone();
        run_within(limited(u64::MAX), || sort_by(&mut sorted, 1, u64::cmp)).unwrap();
        assert!(sorted.is_sorted());
        let mut left = mixed;
        let e = run_within(limited(3), || sort_unstable_by(&mut left, 1, u64::cmp)).unwrap_err();
        assert_eq!(e.code, ErrorCode::MaxTimeMSExpired);
        assert!(!left.is_sorted());
        left.sort_unstable();
        assert_eq!(left, sorted);
    }

    #[test]
    fn an_inner_operation_leaves_the_outer_ones_answer_alone() {
        run_within(limited(0), || {
            assert!(spend(PATIENCE_STEPS).is_err());
            run_within(limited(u64::MAX), || assert!(spend(PATIENCE_STEPS).is_ok()));
            assert!(check().is_err());
        });
    }
}
