//! How a server ends: who asked, and in which order things stop.
//!
//! ```text
//!   asked ─► step down, hand over ─► quiesce: hello says 91, everything else is served ─► Server::shutdown
//! ```
//! A set of one and a standalone node go at once: there is nowhere that clients could turn to (R-HELLO-7).

use crate::Server;
use pando_audit::Event;
use pando_base::{Millis, Result};
use pando_command::Param;
use pando_env::Component;
use std::time::Duration;

/// How long a clean shutdown waits for operations that were told to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(pando_base::limits::SHUTDOWN_DRAIN_SECS_MAX);

/// Sections of `serverStatus` that the log keeps.
const COUNTED: &[&str] = &["asserts", "network", "opLatencies", "opcounters", "opcountersRepl"];

impl Server {
    /// The first half of a clean end, while clients can still connect: another member takes over, and `hello` sends
    /// everybody there. Then comes [`Server::shutdown`].
    pub async fn take_leave(&self) {
        if self.lifecycle.fatal_error().is_some() {
            return;
        }
        self.audit(Event::shutdown);
        let deadline = self.lifecycle.deadline().unwrap_or_else(|| {
            let ms = self.instance.params.int(Param::shutdownTimeoutMillisForSignaledShutdown).max(0);
            self.instance.env.clock.mono() + Duration::from_millis(ms as u64)
        });
        let left = deadline.saturating_sub(self.instance.env.clock.mono()).as_millis() as Millis;
        if let Err(e) = self.replication.hand_over(left, true).await {
            self.instance.env.log.info(Component::Repl, 4794602, "Attempting to step down failed", |a| {
                a.data("error", &e);
            });
        }
        self.replication.quiesce(deadline).await;
    }

    /// The second half of a clean end, after [`Server::take_leave`]: no new commands, running ones are told to stop, the log is synced and a checkpoint is left.
    pub async fn shutdown(&self) -> Result<()> {
        let log = &self.instance.env.log;
        self.replication.services().inspect(|s| s.hooks.shutdown());
        if let Some(c) = self.replication.coordinator.get() {
            c.shut_down();
        }
        self.upkeep.maintenance.gate().close();
        self.instance.begin_shutdown();
        self.sessions.abort_open_transactions();
        let deadline = self.instance.env.clock.mono() + DRAIN_LIMIT;
        loop {
            let running = self
                .instance
                .clients
                .kill_where(pando_base::ErrorCode::InterruptedAtShutdown, |c, _| c.is_connection());
            self.sessions.abort_open_transactions();
            if running == 0 || self.instance.env.clock.mono() >= deadline {
                break;
            }
            self.instance.env.clock.sleep(Duration::from_millis(10)).await;
        }
        self.replication.stop_data_path().await?;
        self.upkeep.maintenance.end_builds("the server shuts down").await;
        self.crud.cursors.open.kill_where(self.instance.env.clock.mono(), |_| true);
        self.lifecycle.stop_tasks();
        if let Some(why) = self.lifecycle.fatal_error() {
            return Err(pando_base::Error::internal(why));
        }
        log.info(Component::Storage, 4784930, "Shutting down the storage engine", |_| {});
        let storage = self.storage.clone();
        let flushed = self
            .instance
            .env
            .offload(move || storage.log().flush_once().and_then(|()| storage.sync_local()))
            .await;
        flushed.unwrap_or_else(|| Err(pando_base::Error::internal("the last flush failed")))?;
        self.upkeep.checkpoints.take().await?;
        self.storage.note_log_ends()?;
        log.info(Component::Control, 9_100_063, "What was counted since the start", |a| {
            self.instance.registry.append_sections(COUNTED, a);
        });
        log.info(Component::Control, 20565, "Now exiting", |_| {});
        Ok(())
    }

    /// For crash tests: background work stops at once and nothing more is written.
    pub fn abandon(&self) {
        self.upkeep.maintenance.abandon_builds("the server stops");
        self.instance.begin_shutdown();
        self.lifecycle.stop_tasks();
    }
}
