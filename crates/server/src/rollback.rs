//! Rollback: what this member wrote and no other has, is undone (R-RB-1..4).
//!
//! ```text
//!   diverged ─► ROLLBACK: no reads, cursors and operations end ─► common point ─► new rollback number on disk
//!            ─► log cut, rows back to stable, log replayed ─► positions told ─► SECONDARY, follows again
//! ```
//! What was acknowledged by a majority is at or below the commit point, which the common point never passes.

use crate::Server;
use pando_base::{Error, ErrorCode, Namespace, Result, limits};
use pando_bson::{Value, doc};
use pando_env::Component;
use pando_repl::data::common_point;
use pando_repl::topology::{Event, MemberState, Position, Positions};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

fn rollback_id_ns() -> Namespace {
    Namespace::unchecked("local", "system.rollback.id")
}

impl Server {
    /// The log of `source` has parted from ours. Ends with this node following again, or with the process.
    pub(crate) fn start_rollback(self: &Arc<Self>, source: String) {
        if self.rolling_back.swap(true, SeqCst) {
            return;
        }
        let server = self.clone();
        self.env.spawn("rollback", async move {
            let done = server.roll_back(&source).await;
            server.rolling_back.store(false, SeqCst);
            match done {
                Ok(()) => {}
                Err(e) if is_of_the_source(&e) => {
                    server.env.log.info(
                        Component::Rollback,
                        21656,
                        "Rollback cannot go on with this source",
                        |a| {
                            a.str("syncSource", &source).str("error", &e.message);
                        },
                    );
                    server.tell_follower_state(MemberState::Secondary);
                }
                Err(e) => server.fatal("Rollback failed", &e.message),
            }
        });
    }

    fn tell_follower_state(&self, state: MemberState) {
        if let Some(c) = self.coordinator.get() {
            c.tell(Event::FollowerState(state));
        }
    }

    async fn roll_back(self: &Arc<Self>, source: &str) -> Result<()> {
        let coordinator = self.coordinator()?.clone();
        if coordinator.read(|core| core.is_leader()) {
            return Ok(());
        }
        coordinator.tell(Event::FollowerState(MemberState::Rollback));
        self.stop_data_path().await?;
        let log = &self.env.log;
        log.info(Component::Rollback, 21611, "Starting rollback", |a| {
            a.str("syncSource", source);
        });
        let point = common_point::find(&self.data_path_deps()?, source).await?;
        let common = point.at.op_time;
        let committed = self.progress.committed().op_time;
        if common < committed {
            return Err(Error::internal(format!(
                "the common point {common} lies before the commit point {committed}: committed writes would be lost"
            )));
        }
        self.quiet_down().await;
        self.storage.log().wait_durable(common.ts).await?;
        let rbid = self.progress.rbid() + 1;
        let doc = doc! { "_id": "rollbackId", "rollbackId": rbid };
        self.local_replace_one(&rollback_id_ns(), &doc.to_raw()).await?;
        self.sync_local().await?;
        self.progress.set_rbid(rbid);
        let catalog = self.catalog.clone();
        let replayed = self.env.offload(move || catalog.roll_back(common.ts)).await;
        let replayed = replayed.unwrap_or_else(|| Err(Error::internal("the rollback panicked")))?;
        self.retryable.clear();
        self.restore_settings()?;
        self.restore_retryable_writes()?;
        self.progress.reset(point.at);
        log.info(Component::Rollback, 21612, "Rollback summary", |a| {
            a.show("commonPoint", common)
                .i64("rbid", i64::from(rbid))
                .u64("numOpsRolledBack", point.undone)
                .u64("numOpsReplayed", replayed);
        });
        self.services().inspect(|s| s.hooks.rollback());
        let at = Position::new(common, point.at.wall);
        coordinator.tell(Event::Rewound(Positions::at(at)));
        self.avoid_older_branches(source);
        coordinator.tell(Event::FollowerState(MemberState::Secondary));
        Ok(())
    }

    /// A member that is still on an older branch has newer entries than ours again: fetched from it, they would have
    /// to be undone once more, over and over.
    fn avoid_older_branches(&self, source: &str) {
        let Some(coordinator) = self.coordinator.get() else { return };
        let older: Vec<_> = coordinator.read(|core| {
            let members = core.config().into_iter().flat_map(|c| &c.members);
            let others = members.filter(|m| m.id != core.self_id() && m.host != source);
            let behind = |id| core.member(id).is_some_and(|d| d.best.written.op.t < core.term());
            others.filter(|m| behind(m.id)).map(|m| m.host.as_str().into()).collect()
        });
        let for_ms = limits::DENY_PROBE_FAILED_MS as i64;
        older.into_iter().for_each(|host| coordinator.tell(Event::SyncSourceDenied { host, for_ms }));
    }

    /// Ends what reads or waits here: nobody may hold a snapshot while rows are taken back.
    async fn quiet_down(&self) {
        let code = ErrorCode::InterruptedDueToReplStateChange;
        self.cursors.kill_where(self.env.clock.mono(), |_| true);
        let mut killed = 0;
        loop {
            let busy = self.instance.clients.kill_where(code, |_, op| op.is_read || op.is_write);
            killed = killed.max(busy);
            if busy == 0 || self.stopping.is_stopping() {
                return self.transitions.note(&self.instance.clients, "rollback", killed);
            }
            self.env.clock.sleep(Duration::from_millis(limits::ROLLBACK_POLL_MS)).await;
        }
    }

    /// At the start.
    pub(crate) fn restore_rollback_id(&self) -> Result<()> {
        let stored = self.local_find_one(&rollback_id_ns())?;
        if let Some(Value::Int32(n)) = stored.as_ref().and_then(|d| d.get("rollbackId")) {
            self.progress.set_rbid(n);
        }
        Ok(())
    }
}

/// Nothing has been changed here yet: another source may do.
fn is_of_the_source(e: &Error) -> bool {
    e.code == ErrorCode::InvalidSyncSource
}
