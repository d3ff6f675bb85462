//! Checkpoints: every `syncdelay` seconds, or when memory is full, all that is stable reaches the tables on disk.

use super::backups::Backups;
use crate::lifecycle::Lifecycle;
use crate::lifecycle::either;
use crate::replication::Replication;
use crate::sessions::LogicalSessions;
use crate::settings::Settings;
use pando_access::Maintenance;
use pando_base::{Result, Timestamp, limits};
use pando_command::Param;
use pando_command::{Instance, OpCtx};
use pando_env::Component;
use pando_env::Env;
use pando_storage::Storage;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub(crate) struct Checkpoints {
    env: Env,
    instance: Arc<Instance>,
    storage: Storage,
    maintenance: Maintenance,
    lifecycle: Arc<Lifecycle>,
    settings: Arc<Settings>,
    replication: Arc<Replication>,
    sessions: Arc<LogicalSessions>,
}

impl Checkpoints {
    pub(crate) fn new(
        instance: Arc<Instance>,
        storage: Storage,
        maintenance: Maintenance,
        lifecycle: Arc<Lifecycle>,
        settings: Arc<Settings>,
        replication: Arc<Replication>,
        sessions: Arc<LogicalSessions>,
    ) -> Checkpoints {
        let env = instance.env.clone();
        Checkpoints { env, instance, storage, maintenance, lifecycle, settings, replication, sessions }
    }
    /// Everything at or below the stable timestamp reaches the tables on disk.
    pub(crate) async fn take(&self) -> Result<Timestamp> {
        self.replication.advance_stable();
        // First, so that the log's front can go up to here.
        if self.replication.member.is_replicated() {
            self.sessions.keep().await?;
        }
        self.keep_recent_oplog()?;
        let maintenance = self.maintenance.clone();
        let done = self.env.offload(move || maintenance.checkpoint()).await;
        done.unwrap_or_else(|| Err(pando_base::Error::internal("the checkpoint failed")))
    }
    /// What was replayed is stable.
    fn is_early_due(&self, replayed: Option<Timestamp>) -> bool {
        let Some(replayed) = replayed else { return false };
        self.replication.advance_stable();
        self.storage.stable() >= replayed
    }
    /// `oplogMinRetentionHours`: what is younger stays whatever the oplog's size.
    /// So does what a start needs to know what sessions have done.
    fn keep_recent_oplog(&self) -> Result<()> {
        let ms = i64::try_from(self.settings.oplog_retention_ms.load(Relaxed)).unwrap_or(i64::MAX);
        let oldest = self.env.clock.wall_ms().saturating_sub(ms).max(0) / 1000;
        let retained = (ms > 0).then(|| Timestamp::new(oldest as u32, 0));
        let sessions = self.maintenance.sessions_upto()?.map(|upto| upto.ts);
        self.storage.log().set_keep_from(retained.into_iter().chain(sessions).min());
        Ok(())
    }

    /// `fsync`: the log is synced and the tables stand at it.
    pub(crate) async fn take_now(&self, ctx: &OpCtx) -> Result<()> {
        let log = self.storage.log();
        ctx.interruptible(log.wait_durable(log.visible())).await??;
        self.take().await.map(drop)
    }
}

pub(crate) async fn run(checkpoints: Arc<Checkpoints>, backups: Arc<Backups>) {
    /// Seconds between two looks at most.
    const POLL: f64 = 1.0;
    let mut last = checkpoints.env.clock.mono();
    // What a start has replayed at length goes to the tables soon: else a server that is killed more often than it takes
    // checkpoints would replay more each time.
    let replayed = checkpoints.storage.stats().memtable_bytes > limits::EARLY_CHECKPOINT_BYTES;
    let mut early = replayed.then(|| checkpoints.storage.log().last());
    loop {
        // A full memory, and a writer that waits for room, must not wait for the next look.
        let every = checkpoints.instance.params.double(Param::syncdelay);
        let look = if every > 0.0 { every.min(POLL) } else { POLL };
        let look = checkpoints.env.clock.sleep(Duration::from_secs_f64(look));
        let wanted = checkpoints.storage.wait_checkpoint_wanted();
        either(wanted, either(look, checkpoints.lifecycle.wait_stopping())).await;
        if checkpoints.lifecycle.is_stopping() {
            return;
        }
        let now = checkpoints.env.clock.mono();
        backups.expire(now);
        let due = every > 0.0 && ((now - last).as_secs_f64() >= every || checkpoints.is_early_due(early));
        if !due && !checkpoints.storage.wants_checkpoint() {
            continue;
        }
        (last, early) = (now, None);
        if let Err(e) = checkpoints.take().await {
            checkpoints.env.log.error(Component::Storage, 22435, "Checkpoint failed", |a| {
                a.data("error", &e);
            });
            // Nothing is known any more about what a failed write or sync left behind.
            if checkpoints.storage.log().poisoned().is_some() {
                return checkpoints.lifecycle.fatal("The checkpoint failed", &e.message);
            }
        }
    }
}
