//! Several calls at the same time.
//!
//! Each has a waker of its own: a call that goes on costs a look at that call, not at all of them. With a thousand shards, each of
//! which answers by itself, the difference is a thousand times.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Who has been woken since the last look, and whom to tell of that.
#[derive(Default)]
struct Woken {
    which: Vec<usize>,
    all: Option<Waker>,
}

type Shared = Arc<Mutex<Woken>>;

fn lock(woken: &Shared) -> MutexGuard<'_, Woken> {
    woken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes one call.
struct Turn {
    at: usize,
    /// It is among those that have been woken.
    listed: AtomicBool,
    woken: Shared,
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        if self.listed.swap(true, SeqCst) {
            return;
        }
        let all = {
            let mut woken = lock(&self.woken);
            woken.which.push(self.at);
            woken.all.clone()
        };
        all.into_iter().for_each(Waker::wake);
    }
}

/// One call that runs.
struct Running<F> {
    future: Pin<Box<F>>,
    turn: Arc<Turn>,
}

/// What all of them come to, in their order.
pub async fn together<F: Future + Send>(mut all: Vec<F>) -> Vec<F::Output>
where
    F::Output: Send,
{
    // Most operations have to do with one shard.
    if all.len() == 1
        && let Some(only) = all.pop()
    {
        return vec![Box::pin(only).await];
    }
    let n = all.len();
    let woken: Shared = Arc::new(Mutex::new(Woken { which: (0..n).collect(), all: None }));
    let running = |(at, future)| {
        let turn = Turn { at, listed: AtomicBool::new(true), woken: woken.clone() };
        Some(Running { future: Box::pin(future), turn: Arc::new(turn) })
    };
    let mut running: Vec<Option<Running<F>>> = all.into_iter().enumerate().map(running).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    let mut left = n;
    std::future::poll_fn(move |cx| {
        let which = {
            let mut woken = lock(&woken);
            if woken.all.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
                woken.all = Some(cx.waker().clone());
            }
            std::mem::take(&mut woken.which)
        };
        for at in which {
            let Some(one) = &mut running[at] else { continue };
            // From now on it may be woken again, by its own poll as well. Swapped, not stored: what was written before it was woken
            // is seen by the poll, however the waker and this meet.
            one.turn.listed.swap(false, SeqCst);
            let waker = Waker::from(one.turn.clone());
            if let Poll::Ready(out) = one.future.as_mut().poll(&mut Context::from_waker(&waker)) {
                (running[at], done[at]) = (None, Some(out));
                left -= 1;
            }
        }
        match left {
            0 => Poll::Ready(done.iter_mut().filter_map(Option::take).collect()),
            _ => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    /// Done at its third poll; counts them, and shows how it is woken.
    async fn counted(polls: &AtomicUsize, wakers: &Mutex<Vec<Waker>>, value: usize) -> usize {
        let mut left = 3;
        std::future::poll_fn(move |cx| {
            polls.fetch_add(1, SeqCst);
            left -= 1;
            if left == 0 {
                return Poll::Ready(value);
            }
            wakers.lock().unwrap().push(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    #[test]
    fn a_thousand_calls_are_looked_at_when_they_are_woken_and_not_when_others_are() {
        const CALLS: usize = 1000;
        let (polls, wakers) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let mut all = pin!(together((0..CALLS).map(|i| counted(&polls, &wakers, i)).collect()));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(all.as_mut().poll(&mut cx).is_pending());
        let mut out = None;
        while out.is_none() {
            // One answers after the other, the last first.
            let woken = wakers.lock().unwrap().pop().expect("whoever waits has left a waker");
            woken.wake_by_ref();
            woken.wake();
            out = match all.as_mut().poll(&mut cx) {
                Poll::Ready(out) => Some(out),
                Poll::Pending => None,
            };
        }
        assert_eq!(out, Some((0..CALLS).collect()), "in their order");
        assert_eq!(polls.load(SeqCst), 3 * CALLS, "each is looked at when it is woken");
    }

    #[test]
    fn who_wakes_himself_while_he_is_looked_at_is_looked_at_again() {
        let yields = |value: u32| async move {
            let mut first = true;
            std::future::poll_fn(move |cx| {
                if std::mem::take(&mut first) {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(value)
            })
            .await
        };
        let mut all = pin!(together(vec![yields(1), yields(2)]));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(all.as_mut().poll(&mut cx).is_pending());
        assert_eq!(all.as_mut().poll(&mut cx), Poll::Ready(vec![1, 2]));
        let mut none = pin!(together(Vec::<std::future::Ready<u32>>::new()));
        assert_eq!(none.as_mut().poll(&mut cx), Poll::Ready(vec![]));
    }
}
