//! `config.system.sessions`: the set's record of its sessions, and what follows from it.
//!
//! Every node tells the primary from time to time which sessions it has seen and which have ended; a TTL index forgets
//! the others. What is not in the record any more is over here, too: its cursors, its transaction, what is known of its
//! retryable writes.

use crate::Server;
use crate::transaction::lsid_doc;
use pando_base::{Error, ErrorCode, Namespace, Result, limits};
use pando_bson::{DocBuf, DocBuilder};
use pando_catalog::Uninterrupted;
use pando_command::{Param, SessionId};
use pando_env::Component;
use pando_session::sessions::Changes;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

pub(crate) fn sessions_ns() -> Namespace {
    Namespace::unchecked("config", "system.sessions")
}

/// `serverStatus.logicalSessionRecordCache`: the last round.
#[derive(Default)]
pub(crate) struct Rounds {
    count: AtomicI64,
    millis: AtomicI64,
    wall_ms: AtomicI64,
    refreshed: AtomicI64,
    ended: AtomicI64,
    cursors: AtomicI64,
    reaped: AtomicI64,
}

impl Rounds {
    pub(crate) fn append_to(&self, d: &mut DocBuilder) {
        let int = |d: &mut DocBuilder, name: &str, n: &AtomicI64| {
            d.i32(name, n.load(Relaxed) as i32);
        };
        int(d, "sessionsCollectionJobCount", &self.count);
        int(d, "lastSessionsCollectionJobDurationMillis", &self.millis);
        d.date("lastSessionsCollectionJobTimestamp", self.wall_ms.load(Relaxed));
        int(d, "lastSessionsCollectionJobEntriesRefreshed", &self.refreshed);
        int(d, "lastSessionsCollectionJobEntriesEnded", &self.ended);
        int(d, "lastSessionsCollectionJobCursorsClosed", &self.cursors);
        int(d, "transactionReaperJobCount", &self.count);
        d.i32("lastTransactionReaperJobDurationMillis", 0);
        d.date("lastTransactionReaperJobTimestamp", self.wall_ms.load(Relaxed));
        int(d, "lastTransactionReaperJobEntriesCleanedUp", &self.reaped);
    }
}

/// A session's `_id` in the record.
fn key_of(id: &SessionId) -> DocBuf {
    lsid_doc(id)
}

impl Server {
    /// One round: tells what has changed, then ends what the record no longer has.
    pub(crate) async fn refresh_sessions(&self) -> Result<()> {
        let from = self.env.clock.mono();
        let changes = self.sessions.changes();
        if self.replication.member.accepts_writes() {
            self.record_sessions(&changes).await?;
        } else {
            self.tell_primary(&changes).await?;
        }
        self.sessions.told(&changes, from);
        let cursors = self.end_unrecorded(from)?;
        let rounds = &self.session_rounds;
        rounds.refreshed.store(changes.used.len() as i64, Relaxed);
        rounds.ended.store(changes.ended.len() as i64, Relaxed);
        rounds.cursors.store(cursors as i64, Relaxed);
        rounds.count.fetch_add(1, Relaxed);
        rounds.wall_ms.store(self.env.clock.wall_ms(), Relaxed);
        let took = self.env.clock.mono().saturating_sub(from);
        rounds.millis.store(took.as_millis() as i64, Relaxed);
        Ok(())
    }

    async fn record_sessions(&self, changes: &Changes) -> Result<()> {
        let ns = sessions_ns();
        let minutes = self.instance.params.int(Param::localLogicalSessionTimeoutMinutes).max(1);
        let mut spec = DocBuilder::new();
        spec.doc("key", |k| {
            k.i32("lastUse", 1);
        });
        spec.str("name", "lsidTTLIndex");
        spec.i32("expireAfterSeconds", (minutes * 60) as i32);
        self.catalog.create_indexes(&ns, &[&spec.finish()], &Uninterrupted).await?;
        for some in changes.used.chunks(limits::INSERT_UNIT_DOCS_MAX) {
            let docs: Vec<DocBuf> = some.iter().map(|id| self.record_of(id)).collect();
            self.internal.put_all(&Uninterrupted, &ns, &docs).await?;
            self.env.tasks.yield_now().await;
        }
        for some in changes.ended.chunks(limits::INSERT_UNIT_DOCS_MAX) {
            let keys: Vec<DocBuf> = some.iter().map(|id| self.record_of(id)).collect();
            self.internal.remove_all(&Uninterrupted, &ns, &keys).await?;
        }
        Ok(())
    }
    fn record_of(&self, id: &SessionId) -> DocBuf {
        let mut b = DocBuilder::with_capacity(128);
        b.raw_doc("_id", &key_of(id));
        b.date("lastUse", self.env.clock.wall_ms());
        b.finish()
    }

    /// A secondary has the primary write.
    async fn tell_primary(&self, changes: &Changes) -> Result<()> {
        if changes.used.is_empty() && changes.ended.is_empty() {
            return Ok(());
        }
        let primary = self.replication.member.state().primary.ok_or_else(|| {
            Error::new(ErrorCode::NotWritablePrimary, "there is no primary to tell of sessions")
        })?;
        let limit = Duration::from_millis(limits::PASSED_ON_MS_MAX);
        let mut connection = self.replication.peers.take_new(&primary, limit).await?;
        for some in changes.used.chunks(limits::INSERT_UNIT_DOCS_MAX) {
            connection.call(&self.upserts(some), limit).await?;
        }
        for some in changes.ended.chunks(limits::INSERT_UNIT_DOCS_MAX) {
            connection.call(&deletes(some), limit).await?;
        }
        Ok(())
    }
    fn upserts(&self, ids: &[SessionId]) -> DocBuf {
        let mut b = DocBuilder::with_capacity(ids.len() * 200);
        b.str("update", sessions_ns().coll());
        b.array("updates", |a| {
            for id in ids {
                a.doc(|u| {
                    u.doc("q", |q| {
                        q.raw_doc("_id", &key_of(id));
                    });
                    u.doc("u", |s| {
                        s.doc("$set", |s| {
                            s.date("lastUse", self.env.clock.wall_ms());
                        });
                    });
                    u.bool("upsert", true);
                });
            }
        });
        b.bool("ordered", false);
        b.str("$db", "config");
        b.finish()
    }

    /// Sessions that nobody has used here for a round and that the record does not have are over. Returns how many
    /// cursors went with them.
    fn end_unrecorded(&self, before: Duration) -> Result<usize> {
        let quiet =
            Duration::from_millis(self.instance.params.int(Param::logicalSessionRefreshMillis) as u64);
        let before = before.saturating_sub(quiet);
        let unused: Vec<(SessionId, DocBuf)> = self
            .sessions
            .unused_since(before)
            .into_iter()
            .map(|id| {
                let mut key = DocBuilder::new();
                key.raw_doc("_id", &key_of(&id));
                (id, key.finish())
            })
            .collect();
        let keys = unused.iter().map(|(id, key)| (*id, &**key));
        let Some(over) = self.internal.lacking(&sessions_ns(), keys)? else { return Ok(0) };
        for id in &over {
            self.sessions.forget(id, before);
            self.abort_session(id, ErrorCode::Interrupted);
        }
        let now = self.env.clock.mono();
        let is_over = |id: &SessionId| !self.sessions.contains(id);
        Ok(self.cursors.kill_where(now, |c| c.lsid.as_ref().is_some_and(is_over)).0)
    }

    /// What is known of retryable writes and transactions of sessions that are over.
    fn reap_sessions(&self) {
        let minutes = self.instance.params.int(Param::localLogicalSessionTimeoutMinutes).max(1);
        let idle_max = Duration::from_secs(minutes as u64 * 60);
        let now = self.env.clock.mono();
        self.sessions.reap(now, idle_max);
        let before = self.retryable.count();
        self.retryable.reap(now, idle_max);
        let reaped = before.saturating_sub(self.retryable.count());
        self.session_rounds.reaped.store(reaped as i64, Relaxed);
        // Cursors of sessions that are over, by time or by endSessions.
        self.cursors.kill_where(now, |c| c.lsid.as_ref().is_some_and(|l| !self.sessions.contains(l)));
    }
}

fn deletes(ids: &[SessionId]) -> DocBuf {
    let mut b = DocBuilder::with_capacity(ids.len() * 150);
    b.str("delete", sessions_ns().coll());
    b.array("deletes", |a| {
        for id in ids {
            a.doc(|d| {
                d.doc("q", |q| {
                    q.raw_doc("_id", &key_of(id));
                });
                d.i32("limit", 1);
            });
        }
    });
    b.str("$db", "config");
    b.finish()
}

pub(crate) async fn run(server: Arc<Server>) {
    loop {
        let every = server.instance.params.int(Param::logicalSessionRefreshMillis).max(1);
        if !server.lifecycle.pause(Duration::from_millis(every as u64)).await {
            return;
        }
        server.reap_sessions();
        let off = server.instance.params.bool(Param::disableLogicalSessionCacheRefresh);
        let unready = server.replication.member.is_replicated()
            && !server.replication.member.is_readable()
            && !server.replication.member.is_primary();
        if off || unready || server.replication.is_member_alone() || server.catalog.gate().is_read_only() {
            continue;
        }
        if let Err(e) = server.refresh_sessions().await {
            server.env.log.info(
                Component::Control,
                20714,
                "Failed to refresh session cache, will try again at the next refresh interval",
                |a| {
                    a.str("error", &e.message);
                },
            );
        }
    }
}
