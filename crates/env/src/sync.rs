//! Wake-ups between tasks that work under any executor.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A counter that tasks can wait on: `bump` wakes everyone who saw an older value.
///
/// Waiters re-check their own condition after each wake-up, so a lost race only costs one more check. Who stops waiting
/// leaves nothing behind: some counters never move in the life of a server.
#[derive(Clone, Default)]
pub struct Notify(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    next_id: u64,
    waiters: BTreeMap<u64, Waker>,
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
        for waker in waiters.into_values() {
            waker.wake();
        }
    }
    /// Resolves once the version differs from `seen` (read it before checking your condition).
    pub fn changed(&self, seen: u64) -> Changed {
        Changed { notify: self.clone(), seen, id: None }
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Notify::changed`].
pub struct Changed {
    notify: Notify,
    seen: u64,
    /// Place among the waiters.
    id: Option<u64>,
}

impl Future for Changed {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.notify.lock();
        if state.version != this.seen {
            // Whoever moved it has taken the waiters.
            this.id = None;
            return Poll::Ready(());
        }
        let id = *this.id.get_or_insert_with(|| {
            state.next_id += 1;
            state.next_id
        });
        let replaced = match state.waiters.get_mut(&id) {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            _ => state.waiters.insert(id, cx.waker().clone()),
        };
        drop(state);
        // The last trace of a task may go with it, and take other waits along: not under the lock.
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let gone = self.notify.lock().waiters.remove(&id);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stops_waiting_leaves_nothing_behind() {
        let notify = Notify::new();
        let mut cx = Context::from_waker(Waker::noop());
        let mut waits: Vec<_> = (0..3).map(|_| Box::pin(notify.changed(notify.version()))).collect();
        for wait in &mut waits {
            assert!(wait.as_mut().poll(&mut cx).is_pending() && wait.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(notify.lock().waiters.len(), 3);
        drop(waits.pop());
        assert_eq!(notify.lock().waiters.len(), 2);
        notify.bump();
        assert!(waits.iter_mut().all(|w| w.as_mut().poll(&mut cx).is_ready()));
        assert!(notify.lock().waiters.is_empty());
    }
}
