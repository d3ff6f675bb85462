//! `config.system.sessions`: the set's record of its sessions, and what follows from it.
//!
//! Every node tells the primary from time to time which sessions it has seen and which have ended; a TTL index forgets
//! the others. What is not in the record any more is over here, too: its cursors, its transaction, what is known of its
//! retryable writes.

use super::LogicalSessions;
use crate::lifecycle::Lifecycle;
use pando_access::Uninterrupted;
use pando_base::{Error, ErrorCode, Namespace, Result, limits};
use pando_bson::{DocBuf, DocBuilder};
use pando_command::{Param, SessionId};
use pando_env::Component;
use pando_metrics::{Collector, Counter, Gauge, Source, Value};
use pando_oplog::session::lsid_doc;
use pando_session::sessions::Changes;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn sessions_ns() -> Namespace {
    Namespace::unchecked("config", "system.sessions")
}

/// The last round (`serverStatus.logicalSessionRecordCache`).
#[derive(Default)]
pub(crate) struct Rounds {
    count: Counter,
    millis: Gauge,
    wall_ms: Gauge,
    refreshed: Gauge,
    ended: Gauge,
    cursors: Gauge,
    reaps: Counter,
    reap_millis: Gauge,
    reap_wall_ms: Gauge,
    reaped: Gauge,
}

impl Source for Rounds {
    fn collect(&self, to: &mut Collector<'_>) {
        let (count, wall) = (self.count.get() as i32, Value::Date(self.wall_ms.get()));
        let gauge = |g: &Gauge| g.get() as i32;
        to.counter(
            "sessionsCollectionJobCount",
            count,
            "rounds",
            "Rounds in which this member told of its sessions",
        )
        .gauge(
            "lastSessionsCollectionJobDurationMillis",
            gauge(&self.millis),
            "milliseconds",
            "Length of the last round",
        )
        .gauge("lastSessionsCollectionJobTimestamp", wall, "date", "End of the last round")
        .gauge(
            "lastSessionsCollectionJobEntriesRefreshed",
            gauge(&self.refreshed),
            "sessions",
            "Sessions used before the last round",
        )
        .gauge(
            "lastSessionsCollectionJobEntriesEnded",
            gauge(&self.ended),
            "sessions",
            "Sessions ended before the last round",
        )
        .gauge(
            "lastSessionsCollectionJobCursorsClosed",
            gauge(&self.cursors),
            "cursors",
            "Cursors closed in the last round because their sessions had ended",
        )
        .counter(
            "transactionReaperJobCount",
            self.reaps.get() as i32,
            "rounds",
            "Rounds in which records of retryable writes were dropped",
        )
        .gauge(
            "lastTransactionReaperJobDurationMillis",
            gauge(&self.reap_millis),
            "milliseconds",
            "Length of the last such round",
        )
        .gauge(
            "lastTransactionReaperJobTimestamp",
            Value::Date(self.reap_wall_ms.get()),
            "date",
            "End of the last such round",
        )
        .gauge(
            "lastTransactionReaperJobEntriesCleanedUp",
            gauge(&self.reaped),
            "sessions",
            "Sessions whose records the last such round dropped",
        );
    }
}

impl LogicalSessions {
    /// `serverStatus.logicalSessionRecordCache`.
    pub(crate) fn collect_metrics(&self, to: &mut Collector<'_>) {
        let (bytes, shed) = self.retryable.usage();
        to.gauge("activeSessionsCount", self.cache.count() as i32, "sessions", "Sessions in use");
        self.rounds.collect(to);
        let known = self.retryable.count() as i32;
        to.gauge(
            "sessionCatalogSize",
            known,
            "sessions",
            "Sessions whose retryable writes and transactions are known",
        )
        .gauge(
            "sessionCatalogBytes",
            bytes,
            "bytes",
            "Memory for retryable writes and transactions of sessions",
        )
        .counter(
            "sessionCatalogShed",
            shed,
            "sessions",
            "Sessions that lost statements to the bound of that memory",
        );
    }
}

/// A session's `_id` in the record.
fn key_of(id: &SessionId) -> DocBuf {
    lsid_doc(id)
}

impl LogicalSessions {
    /// One round: tells what has changed, then ends what the record no longer has.
    pub(crate) async fn refresh(&self) -> Result<()> {
        let from = self.env.clock.mono();
        let changes = self.cache.changes();
        if self.replication.member.accepts_writes() {
            self.record(&changes).await?;
        } else {
            self.tell_primary(&changes).await?;
        }
        self.cache.told(&changes, from);
        let cursors = self.end_unrecorded(from)?;
        let rounds = &self.rounds;
        rounds.refreshed.set(changes.used.len() as i64);
        rounds.ended.set(changes.ended.len() as i64);
        rounds.cursors.set(cursors as i64);
        rounds.count.inc();
        rounds.wall_ms.set(self.env.clock.wall_ms());
        let took = self.env.clock.mono().saturating_sub(from);
        rounds.millis.set(took.as_millis() as i64);
        Ok(())
    }

    async fn record(&self, changes: &Changes) -> Result<()> {
        let ns = sessions_ns();
        let minutes = self.instance.params.int(Param::localLogicalSessionTimeoutMinutes).max(1);
        let mut spec = DocBuilder::new();
        spec.doc("key", |k| {
            k.i32("lastUse", 1);
        });
        spec.str("name", "lsidTTLIndex");
        spec.i32("expireAfterSeconds", (minutes * 60) as i32);
        self.internal.ensure_index(&ns, &spec.finish()).await?;
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
            .cache
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
            self.cache.forget(id, before);
            self.abort_session(id, ErrorCode::Interrupted);
        }
        let now = self.env.clock.mono();
        let is_over = |id: &SessionId| !self.cache.contains(id);
        Ok(self.cursors.kill(now, &|c| c.lsid.as_ref().is_some_and(is_over)))
    }

    /// What is known of retryable writes and transactions of sessions that are over.
    fn reap(&self) {
        let minutes = self.instance.params.int(Param::localLogicalSessionTimeoutMinutes).max(1);
        let idle_max = Duration::from_secs(minutes as u64 * 60);
        let now = self.env.clock.mono();
        self.cache.reap(now, idle_max);
        let before = self.retryable.count();
        self.retryable.reap(now, idle_max);
        let reaped = before.saturating_sub(self.retryable.count());
        let rounds = &self.rounds;
        rounds.reaps.inc();
        rounds.reaped.set(reaped as i64);
        rounds.reap_wall_ms.set(self.env.clock.wall_ms());
        rounds.reap_millis.set(self.env.clock.mono().saturating_sub(now).as_millis() as i64);
        // Cursors of sessions that are over, by time or by endSessions.
        self.cursors.kill(now, &|c| c.lsid.as_ref().is_some_and(|l| !self.cache.contains(l)));
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

pub(crate) async fn run(sessions: Arc<LogicalSessions>, lifecycle: Arc<Lifecycle>) {
    loop {
        let every = sessions.instance.params.int(Param::logicalSessionRefreshMillis).max(1);
        if !lifecycle.pause(Duration::from_millis(every as u64)).await {
            return;
        }
        sessions.reap();
        let off = sessions.instance.params.bool(Param::disableLogicalSessionCacheRefresh);
        let unready = sessions.replication.member.is_replicated()
            && !sessions.replication.member.is_readable()
            && !sessions.replication.member.is_primary();
        if off
            || unready
            || sessions.replication.is_member_alone()
            || sessions.maintenance.gate().is_read_only()
        {
            continue;
        }
        if let Err(e) = sessions.refresh().await {
            sessions.env.log.info(
                Component::Control,
                20714,
                "Failed to refresh session cache, will try again at the next refresh interval",
                |a| {
                    a.data("error", &e);
                },
            );
        }
    }
}
