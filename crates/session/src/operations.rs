//! Running operations as `currentOp` and the `$currentOp` stage show them, on members of sets and on routers.

use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::{ActiveOp, Client, locks, slow};
use pando_oplog::session::lsid_doc;
use std::time::Duration;

/// What a client is doing, or that it does nothing. `of_role` adds what only this kind of node knows of an operation.
pub fn row(
    host: &str,
    client: &Client,
    op: Option<&ActiveOp>,
    now: Duration,
    wall: i64,
    of_role: impl FnOnce(&mut DocBuilder, &ActiveOp),
) -> DocBuf {
    let mut b = DocBuilder::with_capacity(512);
    b.str("type", "op");
    b.str("host", host);
    b.str("desc", &client.desc);
    if let Some(remote) = &client.remote {
        b.i32("connectionId", client.id as i32);
        b.str("client", remote);
    }
    append_application(&mut b, client);
    b.bool("active", op.is_some());
    b.str("currentOpTime", &iso(wall));
    let Some(op) = op else { return b.finish() };
    b.bool("threaded", true);
    b.i32("opid", op.op_id as i32);
    if let Some(lsid) = &op.lsid {
        b.raw_doc("lsid", &lsid_doc(lsid));
    }
    let micros = now.saturating_sub(op.started).as_micros() as i64;
    b.i64("secs_running", micros / 1_000_000);
    b.i64("microsecs_running", micros);
    b.str("op", slow::kind(op.command));
    match &*op.ns {
        "" => b.str("ns", ""),
        ns if ns.contains('.') => b.str("ns", ns),
        db => b.str("ns", &format!("{db}.$cmd")),
    };
    if op.body.is_empty() {
        b.doc("command", |d| {
            if op.truncated {
                d.str("$truncated", op.command);
            }
        });
    } else {
        b.raw_doc("command", RawDoc::trusted(&op.body));
    }
    if !op.plan_summary.is_empty() {
        b.str("planSummary", &op.plan_summary);
    }
    if let Some(cursor) = &op.cursor {
        b.raw_doc("cursor", cursor);
    }
    if !op.msg.is_empty() {
        b.str("msg", &op.msg);
    }
    if let Some((done, total)) = op.progress {
        b.doc("progress", |d| {
            d.i64("done", done as i64);
            d.i64("total", total as i64);
        });
    }
    b.i32("numYields", op.yields as i32);
    of_role(&mut b, op);
    b.doc("locks", |l| locks::append_held(l, &op.locks));
    b.bool("waitingForLock", op.locks.is_waiting());
    b.doc("lockStats", |l| locks::append_taken(l, &op.locks));
    b.bool("waitingForFlowControl", false);
    b.doc("flowControlStats", |_| {});
    b.finish()
}

/// Who a client says it is.
pub fn append_application(b: &mut DocBuilder, client: &Client) {
    if let Some(app) = client.app_name() {
        b.str("appName", app);
    }
    if let Some(doc) = client.metadata() {
        b.raw_doc("clientMetadata", doc);
    }
}

/// `2026-11-21T10:55:54.088+00:00`.
pub fn iso(ms: i64) -> String {
    pando_base::calendar::iso(ms) + "+00:00"
}
