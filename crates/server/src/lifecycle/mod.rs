//! How a server begins and ends.
//!
//! [`Lifecycle`] is what every other part may hold and ask: is the server stopping, is it to stop, has something happened
//! after which it must not write any more. It knows of no other part. [`start`] puts the parts together, [`tasks`] sets the
//! background work going, [`shutdown`] ends all of it in order; these three are the assembly, and nobody calls them but who
//! runs the process.

mod audit;
pub(crate) mod shutdown;
pub(crate) mod start;
mod startup_log;
pub(crate) mod tasks;

use pando_base::redaction::ClientText;
use pando_command::Instance;
use pando_env::sync::Notify;
use pando_env::{Component, Env};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

/// Who has asked this server to end, and how far it is with that.
pub struct Lifecycle {
    env: Env,
    instance: Arc<Instance>,
    requested: AtomicBool,
    /// Monotonic; until then clients may be served after a `shutdown` command.
    deadline: Mutex<Option<Duration>>,
    /// Background tasks stop at their next turn.
    stopping: AtomicBool,
    changed: Notify,
    /// The process is to start again with other files.
    restart: AtomicBool,
    /// Why the process must end at once.
    fatal: Mutex<Option<String>>,
}

impl Lifecycle {
    pub(crate) fn new(env: Env, instance: Arc<Instance>) -> Lifecycle {
        Lifecycle {
            env,
            instance,
            requested: AtomicBool::new(false),
            deadline: Mutex::default(),
            stopping: AtomicBool::new(false),
            changed: Notify::default(),
            restart: AtomicBool::new(false),
            fatal: Mutex::default(),
        }
    }

    /// Asks the process to end (the `shutdown` command, a signal); the one who runs it waits in
    /// [`Lifecycle::wait_shutdown_requested`].
    pub fn request_shutdown(&self, deadline: Option<Duration>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
        self.requested.store(true, SeqCst);
        self.changed.bump();
    }
    /// The same, to start again at once: a copy of another member's files waits to be taken over.
    pub(crate) fn request_restart(&self) {
        self.restart.store(true, SeqCst);
        self.request_shutdown(Some(self.env.clock.mono()));
    }
    /// Whoever runs the process starts it again after it has ended.
    pub fn wants_restart(&self) -> bool {
        self.restart.load(SeqCst)
    }
    pub fn is_shutdown_requested(&self) -> bool {
        self.requested.load(SeqCst)
    }
    pub async fn wait_shutdown_requested(&self) {
        self.wait(&self.requested).await;
    }
    pub(crate) fn deadline(&self) -> Option<Duration> {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop_tasks(&self) {
        self.stopping.store(true, SeqCst);
        self.changed.bump();
    }
    /// Background work has been told to end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }
    pub(crate) async fn wait_stopping(&self) {
        self.wait(&self.stopping).await;
    }
    async fn wait(&self, flag: &AtomicBool) {
        loop {
            let seen = self.changed.version();
            if flag.load(SeqCst) {
                return;
            }
            self.changed.changed(seen).await;
        }
    }
    /// Sleeps; false when the server is stopping.
    pub(crate) async fn pause(&self, d: Duration) -> bool {
        either(self.env.clock.sleep(d), self.wait_stopping()).await;
        !self.is_stopping()
    }
    /// Stands still here while a test's fail point wants it.
    pub(crate) async fn hold(&self, name: &str) {
        let Some(point) = self.instance.fail_points.get(name).filter(|p| p.is_active()) else { return };
        if point.check(&*self.env.rng, |_| true).is_some() {
            either(point.wait_while_active(), self.wait_stopping()).await;
        }
    }

    /// Set after an error that nothing can be done about: exit at once, without a checkpoint.
    pub fn fatal_error(&self) -> Option<String> {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// The log cannot be trusted any more: stop everything without writing.
    pub(crate) fn fatal(&self, what: &str, why: &str) {
        self.env.log.fatal(Component::Storage, 23090, "Fatal assertion", |a| {
            a.str("what", what).data("error", &ClientText(why));
        });
        *self.fatal.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{what}: {why}"));
        self.instance.begin_shutdown();
        self.request_shutdown(None);
        self.stop_tasks();
    }
}

/// Whichever ends first.
pub(crate) async fn either(a: impl Future<Output = ()> + Send, b: impl Future<Output = ()> + Send) {
    let (mut a, mut b) = (std::pin::pin!(a), std::pin::pin!(b));
    std::future::poll_fn(move |cx| {
        let first = a.as_mut().poll(cx).is_ready();
        let second = Pin::as_mut(&mut b).poll(cx).is_ready();
        if first || second { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
