//! How a server ends: who asked, and in which order things stop.
//!
//! ```text
//!   asked ─► step down, hand over ─► quiesce: hello says 91, everything else is served ─► Server::shutdown
//! ```
//! A set of one and a standalone node go at once: there is nowhere that clients could turn to (R-HELLO-7).

use crate::Server;
use pando_base::{Error, ErrorCode, Millis, Result, limits};
use pando_bson::DocBuilder;
use pando_command::reply::append_topology;
use pando_command::{Client, Param};
use pando_env::Component;
use pando_env::sync::Notify;
use pando_repl::MemberState;
use pando_repl::topology::Event;
use pando_repl::topology::message::StepDownRequest;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Shutdown {
    requested: AtomicBool,
    /// Monotonic; until then clients may be served after a `shutdown` command.
    deadline: Mutex<Option<Duration>>,
    /// Background tasks stop at their next turn.
    stopping: AtomicBool,
    changed: Notify,
}

impl Shutdown {
    pub(crate) fn request(&self, deadline: Option<Duration>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
        self.requested.store(true, SeqCst);
        self.changed.bump();
    }
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(SeqCst)
    }
    fn deadline(&self) -> Option<Duration> {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn stop_tasks(&self) {
        self.stopping.store(true, SeqCst);
        self.changed.bump();
    }
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }
    pub(crate) async fn wait_requested(&self) {
        self.wait(&self.requested).await;
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
}

impl Server {
    /// The first half of a clean end, while clients can still connect: another member takes over, and `hello` sends
    /// everybody there. Then comes [`Server::shutdown`].
    pub async fn take_leave(&self) {
        if self.fatal_error().is_some() {
            return;
        }
        let deadline = self.stopping.deadline().unwrap_or_else(|| {
            let ms = self.instance.params.int(Param::shutdownTimeoutMillisForSignaledShutdown).max(0);
            self.env.clock.mono() + Duration::from_millis(ms as u64)
        });
        let left = deadline.saturating_sub(self.env.clock.mono()).as_millis() as Millis;
        if let Err(e) = self.hand_over(left, true).await {
            self.env.log.info(Component::Repl, 4794602, "Attempting to step down failed", |a| {
                a.str("error", &e.message);
            });
        }
        self.quiesce(deadline).await;
    }

    /// Steps down in favour of another member (R-STEP-7). `force`: in the end without one.
    pub(crate) async fn hand_over(&self, limit_ms: Millis, force: bool) -> Result<()> {
        let Some(c) = self.coordinator.get().filter(|_| !self.repl.is_alone()) else { return Ok(()) };
        if !c.read(|core| core.is_leader()) {
            return Ok(());
        }
        let log = &self.env.log;
        log.info(Component::Repl, 4784900, "Stepping down the ReplicationCoordinator for shutdown", |a| {
            a.i64("waitTimeMillis", limit_ms);
        });
        let step_down = |force: bool, catch_up_ms: Millis| {
            let period_ms = limits::SHUTDOWN_STEP_DOWN_MS.max(catch_up_ms);
            let request = StepDownRequest { force, catch_up_ms, period_ms };
            c.command(move |token| Event::StepDown { token, request })
        };
        let worth_waiting = !force || c.read(|core| core.has_possible_heir());
        let patience = if worth_waiting { limit_ms.min(limits::SHUTDOWN_HANDOVER_MS) } else { 0 };
        let mut done = step_down(false, patience).await.map(drop);
        if force && done.as_ref().is_err_and(|e| e.code == ErrorCode::ExceededTimeLimit) {
            done = step_down(true, 0).await.map(drop);
        }
        done.or_else(|e| if e.code == ErrorCode::NotWritablePrimary { Ok(()) } else { Err(e) })
    }

    /// Serves on until `deadline`, so that clients can turn to other members: at most as long as there are any, at
    /// least until a former primary has an heir.
    async fn quiesce(&self, deadline: Duration) {
        let Some(c) = self.coordinator.get() else { return };
        let now = self.env.clock.mono();
        if now >= deadline || self.repl.state().member != MemberState::Secondary {
            return;
        }
        let left = (deadline - now).as_millis() as Millis;
        c.tell(Event::Quiesce { until: c.now() + left });
        self.env.log.info(Component::Repl, 4695102, "Entering quiesce mode for shutdown", |a| {
            a.i64("quiesceTimeMillis", left);
        });
        let heir_by = deadline.min(now + Duration::from_millis(limits::SHUTDOWN_HEIR_MS));
        loop {
            let at = self.env.clock.mono();
            let waits_for_heir = at < heir_by && self.repl.state().primary.is_none();
            if at >= deadline || self.stopping.is_stopping() || !(waits_for_heir || self.has_guests()) {
                break;
            }
            self.env.clock.sleep(Duration::from_millis(limits::QUIESCE_POLL_MS)).await;
        }
        self.env.log.info(Component::Repl, 4695103, "Exiting quiesce mode for shutdown", |_| {});
    }

    /// Is anybody connected who could be told to go elsewhere?
    fn has_guests(&self) -> bool {
        let asked_for_it = |c: &Client| c.active_op().is_some_and(|op| op.command == "shutdown");
        self.instance.clients.all().iter().any(|c| c.is_connection() && !c.is_internal() && !asked_for_it(c))
    }

    /// What `hello` answers while the server takes its leave: 91 and how long it still serves.
    pub(crate) fn check_quiesce(&self) -> Result<()> {
        let (Some(until), Some(c)) = (self.repl.state().quiesce_until_ms, self.coordinator.get()) else {
            return Ok(());
        };
        let left = (until - c.now()).max(0);
        let mut extra = DocBuilder::new();
        append_topology(&mut extra, self.repl.topology_version());
        extra.i64("remainingQuiesceTimeMillis", left);
        let text = "The server is in quiesce mode and will shut down";
        Err(Error::new(ErrorCode::ShutdownInProgress, text).with_extra(extra.finish().into_bytes()))
    }
}
