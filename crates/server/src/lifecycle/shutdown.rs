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
use pando_repl::MemberState;
use pando_repl::topology::Event;
use pando_repl::topology::message::StepDownRequest;
use std::time::Duration;

/// How long a clean shutdown waits for operations that were told to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(pando_base::limits::SHUTDOWN_DRAIN_SECS_MAX);

impl Server {
    /// The first half of a clean end, while clients can still connect: another member takes over, and `hello` sends
    /// everybody there. Then comes [`Server::shutdown`].
    pub async fn take_leave(&self) {
        if self.lifecycle.fatal_error().is_some() {
            return;
        }
        let deadline = self.lifecycle.deadline().unwrap_or_else(|| {
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
            if at >= deadline || self.lifecycle.is_stopping() || !(waits_for_heir || self.has_guests()) {
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

    /// The second half of a clean end, after [`Server::take_leave`]: no new commands, running ones are told to stop, the log is synced and a checkpoint is left.
    pub async fn shutdown(&self) -> Result<()> {
        let log = &self.env.log;
        self.services().inspect(|s| s.hooks.shutdown());
        if let Some(c) = self.coordinator.get() {
            c.shut_down();
        }
        self.catalog.gate().close();
        self.instance.begin_shutdown();
        self.abort_open_transactions();
        let deadline = self.env.clock.mono() + DRAIN_LIMIT;
        loop {
            let running = self
                .instance
                .clients
                .kill_where(pando_base::ErrorCode::InterruptedAtShutdown, |c, _| c.is_connection());
            self.abort_open_transactions();
            if running == 0 || self.env.clock.mono() >= deadline {
                break;
            }
            self.env.clock.sleep(Duration::from_millis(10)).await;
        }
        self.stop_data_path().await?;
        self.catalog.end_builds("the server shuts down").await;
        self.cursors.kill_where(self.env.clock.mono(), |_| true);
        self.lifecycle.stop_tasks();
        if let Some(why) = self.lifecycle.fatal_error() {
            return Err(pando_base::Error::internal(why));
        }
        log.info(Component::Storage, 4784930, "Shutting down the storage engine", |_| {});
        let storage = self.storage.clone();
        let flushed =
            self.env.offload(move || storage.log().flush_once().and_then(|()| storage.sync_local())).await;
        flushed.unwrap_or_else(|| Err(pando_base::Error::internal("the last flush failed")))?;
        self.checkpoint().await?;
        self.storage.note_log_ends()?;
        log.info(Component::Control, 20565, "Now exiting", |_| {});
        Ok(())
    }

    /// For crash tests: background work stops at once and nothing more is written.
    pub fn abandon(&self) {
        self.catalog.abandon_builds("the server stops");
        self.instance.begin_shutdown();
        self.lifecycle.stop_tasks();
    }
}
