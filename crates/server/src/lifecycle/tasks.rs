//! Background work: one small loop each, all ended by [`crate::Server::shutdown`].
//!
//! | task | when | what |
//! |---|---|---|
//! | log flusher | every `journalCommitInterval` ms, or when someone waits | write and sync the log |
//! | checkpoint | every `syncdelay` s, or when memory is full | flush tables up to the stable timestamp |
//! | storage step | when there is something to compact | one bounded step of flushing or compaction |
//! | timestamps | every second | move stable and oldest |
//! | flow control | every second, on a primary | how fast it may write |
//! | cursor reaper | every `clientCursorMonitorFrequencySecs` | drop idle cursors |
//! | session refresh | every `logicalSessionRefreshMillis` | record sessions in use, end those that are over |
//! | cluster time keys | every five minutes, on a primary | make the next key in time |
//! | transaction lifetimes | every half `transactionLifetimeLimitSeconds` | end transactions open for too long |
//! | TTL | every `ttlMonitorSleepSecs` | delete expired documents |
//! | profiler | when there are entries | write them to `system.profile` |
//! | index builds | when one begins or is ready, a vote comes, the set changes | votes, and leave to commit |
//! | noop writer | every `periodicNoopIntervalSecs` when idle | an entry, so that time moves on |

use crate::Server;
use crate::lifecycle::either;
use pando_base::{Result, Timestamp, limits};
use pando_command::Param;
use pando_env::Component;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

pub(crate) fn spawn_all(server: &Arc<Server>) {
    let env = server.env.clone();
    let s = || server.clone();
    env.spawn("log flusher", flush_log(s()));
    env.spawn("checkpoint", checkpoint(s()));
    env.spawn("storage step", storage_step(s()));
    env.spawn("timestamps", move_timestamps(s()));
    env.spawn("flow control", crate::upkeep::flow_control::run(s()));
    env.spawn("cursor reaper", reap_cursors(s()));
    env.spawn("session refresh", crate::sessions::refresh::run(s()));
    env.spawn("cluster time keys", crate::replication::make_keys(server.replication.clone()));
    env.spawn("transaction lifetimes", crate::transaction::expire(s()));
    env.spawn("ttl", crate::upkeep::ttl::run(s()));
    env.spawn("index builds", crate::upkeep::index_builds::run(s()));
    env.spawn("noop writer", write_noops(s()));
    env.spawn("profiler", crate::settings::profiling::run(server.settings.clone(), server.lifecycle.clone()));
}

async fn flush_log(server: Arc<Server>) {
    let log = server.storage.log().clone();
    while !server.lifecycle.is_stopping() {
        let interval = server.instance.params.int(Param::journalCommitInterval).max(1);
        let timer = server.env.clock.sleep(Duration::from_millis(interval as u64));
        either(either(log.wait_flush_wanted(), timer), server.lifecycle.wait_stopping()).await;
        if let Some(e) = log.poisoned() {
            return server.lifecycle.fatal("The log could not be written", &e.message);
        }
        if !log.has_unsynced() {
            continue;
        }
        server.lifecycle.hold("pauseJournalFlusherThread").await;
        server.instance.fail_points.panic_if_asked(&*server.env.rng, "log flusher");
        let flushing = log.clone();
        match server.env.offload(move || flushing.flush_once()).await {
            Some(Ok(())) => server.replication.note_synced(),
            // After a failed sync nothing is known about the file (the log refuses everything from here on).
            Some(Err(e)) => return server.lifecycle.fatal("The log could not be written", &e.message),
            None => return server.lifecycle.fatal("The log flusher failed", "panic"),
        }
    }
}

async fn checkpoint(server: Arc<Server>) {
    /// Seconds between two looks at most.
    const POLL: f64 = 1.0;
    let mut last = server.env.clock.mono();
    // What a start has replayed at length goes to the tables soon: else a server that is killed more often than it takes
    // checkpoints would replay more each time.
    let replayed = server.storage.stats().memtable_bytes > limits::EARLY_CHECKPOINT_BYTES;
    let mut early = replayed.then(|| server.storage.log().last());
    loop {
        // A full memory, and a writer that waits for room, must not wait for the next look.
        let every = server.instance.params.double(Param::syncdelay);
        let look = if every > 0.0 { every.min(POLL) } else { POLL };
        let look = server.env.clock.sleep(Duration::from_secs_f64(look));
        let wanted = server.storage.wait_checkpoint_wanted();
        either(wanted, either(look, server.lifecycle.wait_stopping())).await;
        if server.lifecycle.is_stopping() {
            return;
        }
        let now = server.env.clock.mono();
        server.backups.expire(now);
        let due = every > 0.0 && ((now - last).as_secs_f64() >= every || server.is_early_due(early));
        if !due && !server.storage.wants_checkpoint() {
            continue;
        }
        (last, early) = (now, None);
        if let Err(e) = server.checkpoint().await {
            server.env.log.error(Component::Storage, 22435, "Checkpoint failed", |a| {
                a.str("error", &e.message);
            });
            // Nothing is known any more about what a failed write or sync left behind.
            if server.storage.log().poisoned().is_some() {
                return server.lifecycle.fatal("The checkpoint failed", &e.message);
            }
        }
    }
}

impl Server {
    /// Everything at or below the stable timestamp reaches the tables on disk.
    pub(crate) async fn checkpoint(&self) -> Result<Timestamp> {
        self.replication.advance_stable();
        // First, so that the log's front can go up to here.
        if self.replication.member.is_replicated() {
            self.keep_sessions().await?;
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
}

async fn storage_step(server: Arc<Server>) {
    const IDLE: Duration = Duration::from_millis(100);
    loop {
        let storage = server.storage.clone();
        let more = server.env.offload(move || storage.step()).await;
        let wait = match more {
            Some(Ok(true)) => Duration::from_millis(1),
            Some(Ok(false)) => IDLE,
            Some(Err(e)) => {
                server.env.log.error(Component::Storage, 22436, "Storage maintenance failed", |a| {
                    a.str("error", &e.message);
                });
                Duration::from_secs(1)
            }
            None => return server.lifecycle.fatal("Storage maintenance failed", "panic"),
        };
        if !server.lifecycle.pause(wait).await {
            return;
        }
    }
}

async fn move_timestamps(server: Arc<Server>) {
    while server.lifecycle.pause(Duration::from_secs(1)).await {
        server.replication.advance_stable();
        if let Err(e) = server.note_sessions_known() {
            server.env.log.warn(Component::Repl, 9100033, "The newest log entry could not be read", |a| {
                a.str("error", &e.message);
            });
        }
        if let Err(e) = server.replication.end_restored().await {
            server.env.log.warn(Component::Repl, 9100034, "A restored member cannot vote yet", |a| {
                a.str("error", &e.message);
            });
        }
    }
}

async fn reap_cursors(server: Arc<Server>) {
    loop {
        let every = server.instance.params.int(Param::clientCursorMonitorFrequencySecs).max(1);
        if !server.lifecycle.pause(Duration::from_secs(every as u64)).await {
            return;
        }
        let idle_max = server.instance.params.int(Param::cursorTimeoutMillis).max(0);
        let gone = server.cursors.reap(server.env.clock.mono(), Duration::from_millis(idle_max as u64));
        for id in gone {
            server.env.log.info(Component::Query, 20528, "Cursor timed out", |a| {
                a.i64("cursorId", id);
            });
        }
    }
}

async fn write_noops(server: Arc<Server>) {
    let last = AtomicU64::new(0);
    loop {
        let every = server.instance.params.int(Param::periodicNoopIntervalSecs).max(1);
        if !server.lifecycle.pause(Duration::from_secs(every as u64)).await {
            return;
        }
        let newest = server.storage.log().last();
        let idle = last.swap(newest.0, Relaxed) == newest.0;
        if idle
            && server.replication.member.is_primary()
            && server.instance.params.bool(Param::writePeriodicNoops)
        {
            match server.replication.write_noop("periodic noop") {
                Ok(at) => last.store(at.ts.0, Relaxed),
                Err(e) => {
                    server.env.log.warn(Component::Repl, 21220, "Could not write the periodic noop", |a| {
                        a.str("error", &e.message);
                    })
                }
            }
        }
    }
}
