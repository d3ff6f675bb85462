//! Wake-ups between tasks that work under any executor.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A counter that tasks can wait on: `bump` wakes everyone who saw an older value.
///
/// Waiters re-check their own condition after each wake-up, so a lost race only costs one more check.
#[derive(Clone, Default)]
pub struct Notify(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    waiters: Vec<Waker>,
}

impl Notify {
    pub fn new() -> Notify {
        Notify::default()
    }
    pub fn version(&self) -> u64 {
        self.lock().version
    }
    pub fn bump(&self) {
        let waiters = {
            let mut state = self.lock();
            state.version += 1;
            std::mem::take(&mut state.waiters)
        };
        for waker in waiters {
            waker.wake();
        }
    }
    /// Resolves once the version differs from `seen` (read it before checking your condition).
    pub fn changed(&self, seen: u64) -> Changed {
        Changed { notify: self.clone(), seen }
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Notify::changed`].
pub struct Changed {
    notify: Notify,
    seen: u64,
}

impl Future for Changed {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.notify.lock();
        if state.version != self.seen {
            return Poll::Ready(());
        }
        if !state.waiters.iter().any(|w| w.will_wake(cx.waker())) {
            state.waiters.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
