//! Locks between writers and definition changes that work under any executor.
//!
//! Writers of a collection hold its lock shared; a change of its definition holds it alone. Readers take no lock:
//! they read a snapshot. A waiting exclusive request stops new shared ones, so that a stream of writers cannot
//! starve it. Waiting is a future; nobody blocks a thread.
//!
//! **Order, so that there is no deadlock:** first the definition lock of the database (two databases: by name),
//! then locks of collections by namespace. A writer holds one collection's lock and asks for nothing else.
//! `lock_order.rs` watches over that.

pub(crate) mod order;

use crate::lock::order::Resource;
use pando_base::panics::poisoned;
use pando_env::Clock;
use pando_env::op_locks::{self, Class, Mode, OpLocks};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A fair shared/exclusive lock.
#[derive(Clone, Default, Debug)]
pub struct Lock(Arc<Mutex<State>>);

#[derive(Default, Debug)]
struct State {
    shared: u32,
    exclusive: bool,
    next_ticket: u64,
    queue: VecDeque<Waiter>,
    resource: Resource,
    counts: Counts,
}

/// Who holds a lock now, and who waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Holders {
    pub shared: u32,
    pub exclusive: bool,
    pub waiting_shared: usize,
    pub waiting_exclusive: usize,
}

impl Holders {
    pub fn any(&self) -> bool {
        *self != Holders::default()
    }
}

/// How often locks were taken, and how often somebody had to wait first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    pub shared: u64,
    pub exclusive: u64,
    pub shared_waits: u64,
    pub exclusive_waits: u64,
    /// How long those waits were.
    pub shared_us: u64,
    pub exclusive_us: u64,
    /// Waiting now.
    pub queued: u64,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.shared += other.shared;
        self.exclusive += other.exclusive;
        self.shared_waits += other.shared_waits;
        self.exclusive_waits += other.exclusive_waits;
        self.shared_us += other.shared_us;
        self.exclusive_us += other.exclusive_us;
        self.queued += other.queued;
    }
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    exclusive: bool,
    waker: Option<Waker>,
}

/// Held until dropped.
#[derive(Debug)]
pub struct Guard {
    lock: Lock,
    exclusive: bool,
    /// Where debug assertions are on.
    order: Option<order::Ticket>,
    /// Whose operation it is held for.
    op: Option<(Arc<OpLocks>, Class)>,
}

impl Guard {
    fn new(lock: Lock, exclusive: bool, order: Option<order::Ticket>, class: Option<Class>) -> Guard {
        let op = class.and_then(|class| Some((op_locks::current()?, class)));
        if let Some((op, class)) = &op {
            op.acquired(*class, Mode::of(exclusive));
        }
        Guard { lock, exclusive, order, op }
    }
    fn leave_op(&mut self) {
        if let Some((op, class)) = self.op.take() {
            op.released(class, Mode::of(self.exclusive));
        }
    }
    /// From here on somebody else than a task keeps it.
    pub fn leave_task(&mut self) {
        self.order = None;
        self.leave_op();
    }
    /// A lock that was taken without waiting belongs to this task.
    pub async fn join_task(mut self) -> Guard {
        if cfg!(debug_assertions) {
            let resource = self.lock.state().resource.clone();
            self.order = std::future::poll_fn(|cx| {
                order::check(task_of(cx), &resource);
                Poll::Ready(order::note(task_of(cx), &resource))
            })
            .await;
        }
        self
    }
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }
}

impl Lock {
    pub fn new() -> Lock {
        Lock::default()
    }
    pub fn of(resource: Resource) -> Lock {
        Lock(Arc::new(Mutex::new(State { resource, ..State::default() })))
    }
    pub fn counts(&self) -> Counts {
        let s = self.state();
        Counts { queued: s.queue.len() as u64, ..s.counts }
    }
    /// Somebody beside the one who asks has a handle of it: as a holder, or because they wait.
    pub fn is_shared_with_others(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
    pub fn holders(&self) -> Holders {
        let s = self.state();
        let waiting_exclusive = s.queue.iter().filter(|w| w.exclusive).count();
        Holders {
            shared: s.shared,
            exclusive: s.exclusive,
            waiting_shared: s.queue.len() - waiting_exclusive,
            waiting_exclusive,
        }
    }
    /// Takes the lock shared if that is possible at once.
    pub fn try_shared(&self) -> Option<Guard> {
        self.try_lock(false)
    }
    pub fn try_exclusive(&self) -> Option<Guard> {
        self.try_lock(true)
    }
    pub fn shared(&self, clock: &Arc<dyn Clock>) -> Acquire {
        self.acquire(false, clock)
    }
    pub fn exclusive(&self, clock: &Arc<dyn Clock>) -> Acquire {
        self.acquire(true, clock)
    }
    fn acquire(&self, exclusive: bool, clock: &Arc<dyn Clock>) -> Acquire {
        Acquire { lock: self.clone(), exclusive, waiting: None, clock: clock.clone() }
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(poisoned)
    }
    fn try_lock(&self, exclusive: bool) -> Option<Guard> {
        let mut s = self.state();
        if !s.queue.is_empty() || !s.grant(exclusive) {
            return None;
        }
        let class = s.resource.class();
        drop(s);
        Some(Guard::new(self.clone(), exclusive, None, class))
    }
}

impl State {
    fn grant(&mut self, exclusive: bool) -> bool {
        let free = !self.exclusive && (!exclusive || self.shared == 0);
        if free {
            self.exclusive = exclusive;
            self.shared += u32::from(!exclusive);
            self.counts.shared += u64::from(!exclusive);
            self.counts.exclusive += u64::from(exclusive);
        }
        free
    }
    /// Wakes those at the head of the queue that could now run.
    fn wake_head(&mut self) {
        let mut shared_only = false;
        for w in &mut self.queue {
            if w.exclusive && shared_only {
                break;
            }
            if let Some(waker) = w.waker.take() {
                waker.wake();
            }
            if w.exclusive {
                break;
            }
            shared_only = true;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.leave_op();
        let mut s = self.lock.state();
        if self.exclusive {
            s.exclusive = false;
        } else {
            s.shared -= 1;
        }
        s.wake_head();
    }
}

/// Resolves to the [`Guard`].
pub struct Acquire {
    lock: Lock,
    exclusive: bool,
    waiting: Option<Waiting>,
    clock: Arc<dyn Clock>,
}

/// A place in the queue.
struct Waiting {
    ticket: u64,
    since: Duration,
    op: Option<(Arc<OpLocks>, Class)>,
}

impl Future for Acquire {
    type Output = Guard;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Guard> {
        let lock = self.lock.clone();
        let mut s = lock.state();
        if cfg!(debug_assertions) && self.waiting.is_none() {
            order::check(task_of(cx), &s.resource);
        }
        let at = match &self.waiting {
            None if s.queue.is_empty() && s.grant(self.exclusive) => {
                return Poll::Ready(self.guard(cx, &s.resource));
            }
            None => {
                let waiting = self.begin_to_wait(&mut s);
                self.waiting = Some(waiting);
                s.queue.len() - 1
            }
            Some(waiting) => s.queue.partition_point(|w| w.ticket < waiting.ticket),
        };
        // First come, first served, except that shared requests pass together.
        let at_turn = at == 0 || (!self.exclusive && s.queue.iter().take(at).all(|w| !w.exclusive));
        if at_turn && s.grant(self.exclusive) {
            s.queue.remove(at);
            self.end_wait(&mut s);
            s.wake_head();
            return Poll::Ready(self.guard(cx, &s.resource));
        }
        if let Some(w) = s.queue.get_mut(at) {
            w.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Acquire {
    fn guard(&self, cx: &Context<'_>, resource: &Resource) -> Guard {
        let order = if cfg!(debug_assertions) { order::note(task_of(cx), resource) } else { None };
        Guard::new(self.lock.clone(), self.exclusive, order, resource.class())
    }
    fn begin_to_wait(&self, s: &mut State) -> Waiting {
        s.counts.shared_waits += u64::from(!self.exclusive);
        s.counts.exclusive_waits += u64::from(self.exclusive);
        let ticket = s.next_ticket;
        s.next_ticket += 1;
        s.queue.push_back(Waiter { ticket, exclusive: self.exclusive, waker: None });
        let op = s.resource.class().and_then(|class| Some((op_locks::current()?, class)));
        if let Some((op, class)) = &op {
            op.waits(*class, Mode::of(self.exclusive));
        }
        Waiting { ticket, since: self.clock.mono(), op }
    }
    /// Returns the place that was left.
    fn end_wait(&mut self, s: &mut State) -> Option<u64> {
        let Waiting { ticket, since, op } = self.waiting.take()?;
        let took = self.clock.mono().saturating_sub(since);
        let sum = if self.exclusive { &mut s.counts.exclusive_us } else { &mut s.counts.shared_us };
        *sum += took.as_micros() as u64;
        if let Some((op, class)) = op {
            op.waited(class, Mode::of(self.exclusive), took);
        }
        Some(ticket)
    }
}

fn task_of(cx: &Context<'_>) -> usize {
    cx.waker().data().addr()
}

impl Drop for Acquire {
    fn drop(&mut self) {
        if self.waiting.is_none() {
            return;
        }
        let lock = self.lock.clone();
        let mut s = lock.state();
        if let Some(ticket) = self.end_wait(&mut s) {
            s.queue.retain(|w| w.ticket != ticket);
            s.wake_head();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Arc<dyn Clock> {
        pando_storage::testing::env().clock
    }
    fn poll(f: &mut Acquire) -> Option<Guard> {
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(f).poll(&mut cx) {
            Poll::Ready(g) => Some(g),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_waiting_exclusive_request_stops_new_shared_ones() {
        let lock = Lock::new();
        let reader = lock.try_shared().unwrap();
        let mut writer = lock.exclusive(&clock());
        assert!(poll(&mut writer).is_none());
        let mut late = lock.shared(&clock());
        assert!(poll(&mut late).is_none() && lock.try_shared().is_none());
        drop(reader);
        let held = poll(&mut writer).unwrap();
        assert!(poll(&mut late).is_none());
        drop(held);
        assert!(poll(&mut late).is_some());
    }

    #[test]
    fn shared_holders_overlap_and_exclude_an_exclusive_one() {
        let lock = Lock::new();
        let a = lock.try_shared().unwrap();
        let b = lock.try_shared().unwrap();
        assert!(lock.try_exclusive().is_none());
        drop((a, b));
        assert!(lock.try_exclusive().is_some());
    }

    #[test]
    fn an_abandoned_request_does_not_block_the_queue() {
        let lock = Lock::new();
        let a = lock.try_shared().unwrap();
        let mut writer = lock.exclusive(&clock());
        assert!(poll(&mut writer).is_none());
        drop(writer);
        assert!(lock.try_shared().is_some());
        drop(a);
    }
}
