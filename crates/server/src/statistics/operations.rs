//! What is going on in this process, as `currentOp` and the `$currentOp` stage show it.

use crate::Config;
use crate::cursors::OpenCursors;
use crate::tenants::Tenants;
use pando_access::{Index, Maintenance, OpenTxn, Phase, PreparedView};
use pando_base::{Namespace, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::{ActiveOp, Client, Instance, OpCtx};
use pando_oplog::session::lsid_doc;
use pando_session::operations::{self, append_application, iso};
use pando_session::retryable::Retryable;
use pando_tenants::Kind;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What to show; the options of the command and of the stage.
#[derive(Clone, Copy, Default)]
pub(crate) struct Want {
    /// Connections without a running operation too.
    pub(crate) idle_connections: bool,
    pub(crate) idle_cursors: bool,
    /// No transactions between two statements.
    pub(crate) no_idle_sessions: bool,
    /// Only of this user.
    pub(crate) owner: Option<[u8; 32]>,
}

impl Want {
    fn is_of(&self, owner: Option<[u8; 32]>) -> bool {
        self.owner.is_none() || self.owner == owner
    }
}

/// Who is asked.
pub(crate) struct Operations {
    pub(crate) config: Arc<Config>,
    pub(crate) instance: Arc<Instance>,
    pub(crate) maintenance: Maintenance,
    pub(crate) cursors: Arc<OpenCursors>,
    pub(crate) retryable: Arc<Retryable>,
    pub(crate) tenants: Option<Arc<Tenants>>,
}

impl Operations {
    pub(crate) fn rows(&self, ctx: &OpCtx, want: Want) -> Vec<DocBuf> {
        let now = ctx.env().clock.mono();
        let wall = ctx.env().clock.wall_ms();
        let host = self.config.host_port();
        let mut rows = Vec::new();
        for client in self.instance.clients.all() {
            let op = client.active_op();
            if op.is_none() && !want.idle_connections || !want.is_of(client_owner(&client)) {
                continue;
            }
            rows.push(row(&host, &client, op.as_ref(), now, wall));
        }
        let builds = self.maintenance.running_builds();
        let shown = builds.iter().filter(|_| want.owner.is_none());
        rows.extend(shown.filter_map(|(ns, _, indexes)| build_row(&host, ns, indexes, now, wall)));
        if !want.no_idle_sessions {
            let idle = crate::transaction::parked(&self.retryable);
            let own = idle.iter().filter(|open| want.is_of(Some(open.lsid.uid)));
            rows.extend(own.map(|open| idle_session(&host, open, None, now)));
            let prepared = self.maintenance.prepared();
            let own = prepared.iter().filter(|_| want.owner.is_none());
            rows.extend(own.map(|p| prepared_session(&host, p, now)));
        }
        if want.owner.is_none() {
            rows.extend(
                self.tenants.iter().flat_map(|t| t.states()).map(|(kind, s)| tenants_row(&host, kind, &s)),
            );
        }
        if want.idle_cursors {
            let idle = self.cursors.idle();
            let own = idle.iter().filter(|(_, c)| want.is_of(c.owner));
            rows.extend(own.map(|(id, c)| idle_cursor(&host, *id, c, now)));
        }
        rows
    }
}

/// The digest of who is logged in there.
fn client_owner(client: &Client) -> Option<[u8; 32]> {
    client.login().user().map(|user| user.name.digest())
}

/// What a client is doing.
fn row(host: &str, client: &Client, op: Option<&ActiveOp>, now: Duration, wall: i64) -> DocBuf {
    operations::row(host, client, op, now, wall, |b, op| {
        let transaction = op.transaction.as_ref().and_then(Weak::upgrade);
        if let Some(open) = transaction.and_then(|open| open.downcast::<OpenTxn>().ok()) {
            b.doc("transaction", |t| append_transaction(t, &open, now));
        }
    })
}

fn append_prepared(t: &mut DocBuilder, since: Duration, now: Duration) {
    t.i64("timePreparedMicros", now.saturating_sub(since).as_micros() as i64);
}

/// A prepared transaction. One that came with the log, from another member, knows little of its statements.
fn prepared_session(host: &str, p: &PreparedView, now: Duration) -> DocBuf {
    if let Some(open) = p.about.as_ref().and_then(|about| about.downcast_ref::<OpenTxn>()) {
        return idle_session(host, open, Some(p.since), now);
    }
    let (id, number) = p.id;
    let mut b = DocBuilder::with_capacity(256);
    b.str("type", "idleSession");
    b.str("host", host);
    b.str("desc", "inactive transaction");
    b.raw_doc("lsid", &lsid_doc(&id));
    b.doc("transaction", |t| {
        t.doc("parameters", |p| {
            p.i64("txnNumber", number);
            p.i32("txnRetryCounter", 0);
            p.bool("autocommit", false);
        });
        t.timestamp("readTimestamp", Timestamp::ZERO);
        append_prepared(t, p.since, now);
    });
    b.bool("waitingForLock", false);
    b.bool("active", false);
    b.doc("locks", |_| {});
    b.doc("lockStats", |_| {});
    b.finish()
}

/// A transaction between two statements.
fn idle_session(host: &str, open: &OpenTxn, prepared: Option<Duration>, now: Duration) -> DocBuf {
    let mut b = DocBuilder::with_capacity(512);
    b.str("type", "idleSession");
    b.str("host", host);
    b.str("desc", "inactive transaction");
    // Whose the last statement was.
    if let Some(client) = open.client() {
        if let Some(remote) = &client.remote {
            b.str("client", remote);
        }
        b.i64("connectionId", client.id);
        append_application(&mut b, &client);
    }
    b.raw_doc("lsid", &lsid_doc(&open.lsid));
    b.doc("transaction", |t| {
        append_transaction(t, open, now);
        if let Some(since) = prepared {
            append_prepared(t, since, now);
        }
    });
    b.bool("waitingForLock", false);
    b.bool("active", false);
    b.doc("locks", |l| {
        for name in ["ReplicationStateTransition", "Global", "Database", "Collection"] {
            l.str(name, "w");
        }
    });
    b.doc("lockStats", |_| {});
    b.finish()
}

fn append_transaction(t: &mut DocBuilder, open: &OpenTxn, now: Duration) {
    let (age, active) = open.spent(now);
    t.doc("parameters", |p| {
        p.i64("txnNumber", open.number);
        p.i32("txnRetryCounter", 0);
        p.bool("autocommit", false);
        p.doc("readConcern", |rc| {
            rc.str("level", open.read_concern.level().text());
            rc.str("provenance", open.read_concern.provenance().text());
        });
    });
    t.timestamp("readTimestamp", open.read_timestamp);
    t.str("startWallClockTime", &iso(open.started_wall_ms));
    t.i64("timeOpenMicros", age.as_micros() as i64);
    t.i64("timeActiveMicros", active.as_micros() as i64);
    t.i64("timeInactiveMicros", age.saturating_sub(active).as_micros() as i64);
    t.str("expiryTime", &iso(open.started_wall_ms + open.lifetime.as_millis() as i64));
}

/// An index build goes on in a task of its own, whoever waits for it.
fn build_row(host: &str, ns: &Namespace, indexes: &[Arc<Index>], now: Duration, wall: i64) -> Option<DocBuf> {
    let build = indexes.first()?.building.as_ref()?;
    let p = &build.progress;
    let total = p.docs_total.load(Relaxed);
    let (msg, done, total) = match p.phase() {
        Phase::Scanning => ("scanning collection", p.docs_done.load(Relaxed).min(total), total),
        Phase::Loading => {
            ("inserting keys from external sorter into index", p.keys.load(Relaxed).min(total), total)
        }
        Phase::Draining | Phase::Ready => (
            "draining writes received during build",
            p.side_applied.load(Relaxed),
            p.side_writes.load(Relaxed),
        ),
    };
    let percent = if total == 0 { 100 } else { done * 100 / total };
    let mut b = DocBuilder::with_capacity(512);
    b.str("type", "op");
    b.str("host", host);
    b.str("desc", "IndexBuildsCoordinator");
    b.bool("active", true);
    b.str("currentOpTime", &iso(wall));
    let micros = now.saturating_sub(build.started).as_micros() as i64;
    b.i64("secs_running", micros / 1_000_000);
    b.i64("microsecs_running", micros);
    b.str("op", "command");
    b.str("ns", ns.as_str());
    b.doc("command", |d| {
        d.str("createIndexes", ns.coll());
        d.array("indexes", |a| {
            for i in indexes {
                a.raw_doc(&i.spec.doc);
            }
        });
        d.str("$db", ns.db());
    });
    b.str("msg", &format!("Index Build: {msg} Index Build: {msg}: {done}/{total} {percent}%"));
    b.doc("progress", |d| {
        d.i64("done", done as i64);
        d.i64("total", total as i64);
    });
    b.i32("numYields", 0);
    b.bool("waitingForLock", false);
    b.bool("waitingForFlowControl", false);
    Some(b.finish())
}

/// A split goes on in a task of its own, whoever waits for it.
fn tenants_row(host: &str, kind: Kind, state: &RawDoc) -> DocBuf {
    let desc = match kind {
        Kind::ShardSplit => "shard split operation",
        Kind::Donor => "tenant donor migration",
        Kind::Recipient => "tenant recipient migration",
        Kind::MergeRecipient => "shard merge recipient",
    };
    let mut b = DocBuilder::with_capacity(512);
    b.str("type", "op").str("host", host).str("desc", desc);
    for e in state.iter() {
        match e.name() {
            "_id" => b.value("migrationId", e.value()),
            _ => b.elem(e),
        };
    }
    let state_is = |text: &str| state.get("state").and_then(|v| v.as_str()) == Some(text);
    let reached = state_is("committed") || state_is("aborted");
    b.bool("reachedDecision", reached).bool("active", !reached);
    b.finish()
}

fn idle_cursor(host: &str, id: i64, c: &pando_session::CursorInfo, now: Duration) -> DocBuf {
    let mut b = DocBuilder::with_capacity(512);
    b.str("type", "idleCursor");
    b.str("host", host);
    b.str("ns", c.ns.as_str());
    if let Some(lsid) = &c.lsid {
        b.raw_doc("lsid", &lsid_doc(lsid));
    }
    if !c.plan_summary.is_empty() {
        b.str("planSummary", &c.plan_summary);
    }
    b.doc("cursor", |d| append_cursor(d, id, c, now));
    b.finish()
}

/// The `cursor` document of a row.
fn append_cursor(d: &mut DocBuilder, id: i64, c: &pando_session::CursorInfo, now: Duration) {
    d.i64("cursorId", id);
    d.date("createdDate", c.created_ms);
    d.date("lastAccessDate", c.created_ms + c.last_use.saturating_sub(c.created).as_millis() as i64);
    d.i64("nDocsReturned", c.docs as i64);
    d.i64("nBatchesReturned", c.batches as i64);
    d.bool("noCursorTimeout", c.no_timeout);
    d.bool("tailable", c.tailable);
    d.bool("awaitData", c.await_data);
    d.raw_doc("originatingCommand", &c.command);
    d.i64("idleMicros", now.saturating_sub(c.last_use).as_micros() as i64);
}
