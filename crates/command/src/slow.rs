//! The slow-query log line (id 51803) and the profile entry: what an operation did and how long it took.

use crate::node::Node;
use crate::op_ctx::OpDebug;
use crate::{Flags, OpCtx, Request, secrets};
use pando_base::Error;
use pando_base::redaction::ClientText;
use pando_bson::extjson::{Mode, write_value};
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use pando_env::Component;
use pando_env::log::Attrs;
use std::time::Duration;

/// Where the report goes: the log, and the profile collection by its level (1 = slow ones, 2 = all).
pub(crate) struct Where {
    pub(crate) log: bool,
    pub(crate) level: i32,
    /// The database's filter says whether it is slow, not the time it took.
    pub(crate) filtered: bool,
}

/// Fields that a profile entry may have, which are those that a filter may read.
pub const PROFILED: &[&str] = &[
    "op",
    "ns",
    "command",
    "originatingCommand",
    "appName",
    "planSummary",
    "keysExamined",
    "docsExamined",
    "hasSortStage",
    "usedDisk",
    "fromMultiPlanner",
    "replanned",
    "replanReason",
    "nMatched",
    "nModified",
    "ninserted",
    "ndeleted",
    "nUpserted",
    "keysInserted",
    "keysDeleted",
    "prepareReadConflicts",
    "writeConflicts",
    "nreturned",
    "cursorid",
    "cursorExhausted",
    "exhaust",
    "numYield",
    "queryHash",
    "planCacheKey",
    "queryFramework",
    "locks",
    "flowControl",
    "storage",
    "writeConcern",
    "ok",
    "errMsg",
    "errName",
    "errCode",
    "responseLength",
    "protocol",
    "dataThroughputLastSecond",
    "dataThroughputAverage",
    "execStats",
    "mongot",
    "millis",
    "ts",
    "client",
    "allUsers",
    "user",
];

/// What a command is called as `op` or `type` in log lines, profiles and `currentOp`; `none` where no command runs.
pub fn kind(command: &str) -> &'static str {
    match command {
        "find" => "query",
        "getMore" => "getmore",
        "insert" => "insert",
        "update" => "update",
        "delete" => "remove",
        "" => "none",
        _ => "command",
    }
}

#[allow(clippy::too_many_arguments)]
pub(crate) fn report<S: Node>(
    node: &S,
    ctx: &OpCtx,
    flags: Flags,
    req: &Request<'_>,
    reply: &RawDoc,
    error: Option<&Error>,
    took: Duration,
    to: Where,
) {
    let mut entry = DocBuilder::new();
    describe(&mut entry, ctx, flags, req, reply, error, took);
    let entry = entry.finish();
    let mut log = to.log;
    let mut profiled = None;
    if to.filtered {
        let entry = profiled.insert(profile_entry(ctx, &entry, took));
        log = node.passes_profile_filter(&ctx.db, entry);
    }
    if log {
        ctx.env().log.info(Component::Command, 51803, "Slow query", |a| {
            entry.iter().for_each(|e| note(a, e));
        });
    }
    if to.level >= 2 || (to.level == 1 && log) {
        node.profile(&ctx.db, profiled.unwrap_or_else(|| profile_entry(ctx, &entry, took)));
    }
}

/// One field of the line. What the client said is in three of them.
fn note(a: &mut Attrs, e: Elem<'_>) {
    match (e.name(), e.value()) {
        ("command" | "originatingCommand", Value::Document(d)) => {
            a.data(e.name(), d);
        }
        ("errMsg", Value::String(words)) => {
            a.data(e.name(), &ClientText(words));
        }
        (name, value) => {
            let mut json = String::new();
            write_value(&mut json, value, Mode::Relaxed);
            a.own_json(name, &json);
        }
    }
}

/// The entry of `system.profile`: what the log line says, by the names that profiles have.
fn profile_entry(ctx: &OpCtx, entry: &RawDoc, took: Duration) -> DocBuf {
    let mut b = DocBuilder::new();
    b.str("op", kind(ctx.command));
    for e in entry {
        match e.name() {
            "type" | "durationMillis" | "remote" => {}
            "numYields" => drop(b.value("numYield", e.value())),
            "reslen" => drop(b.value("responseLength", e.value())),
            _ => drop(b.elem(e)),
        }
    }
    b.i64("millis", took.as_millis() as i64);
    b.date("ts", ctx.env().clock.wall_ms());
    b.str("client", ctx.client.remote.as_deref().unwrap_or("").rsplit_once(':').map_or("", |x| x.0));
    b.array("allUsers", |_| {});
    b.str("user", "");
    b.finish()
}

fn describe(
    b: &mut DocBuilder,
    ctx: &OpCtx,
    flags: Flags,
    req: &Request<'_>,
    reply: &RawDoc,
    error: Option<&Error>,
    took: Duration,
) {
    let d = ctx.debug_snapshot();
    b.str("type", kind(ctx.command));
    let shown = secrets::shown(req.name, flags, req.db, req.body);
    let ns = match (d.ns.is_empty(), secrets::shown_name(&shown).filter(|_| !flags.has(Flags::NAMES_NOTHING)))
    {
        (false, _) => d.ns.clone(),
        (true, Some(name)) if flags.name_in_full(name) => name.to_owned(),
        (true, Some(coll)) => format!("{}.{coll}", req.db),
        (true, None) => format!("{}.$cmd", req.db),
    };
    b.str("ns", &ns);
    if let Some(app) = ctx.client.app_name() {
        b.str("appName", app);
    }
    b.doc("command", |c| append_command(c, ctx, &shown));
    if let Some(original) = &d.originating_command {
        b.raw_doc("originatingCommand", RawDoc::trusted(original));
    }
    if !d.plan_summary.is_empty() {
        b.str("planSummary", &d.plan_summary);
    }
    append_figures(b, &d);
    b.i64("numYields", d.yields as i64);
    if let Some(e) = error {
        b.bool("ok", false);
        b.str("errMsg", secrets::shown_error(&shown, req.body, &e.message));
        b.str("errName", &e.code.name());
        b.i32("errCode", e.code.0);
    }
    b.i64("reslen", reply.byte_len() as i64);
    b.doc("locks", |l| crate::locks::append_taken(l, &ctx.locks));
    b.str("remote", ctx.client.remote.as_deref().unwrap_or(""));
    b.str("protocol", if req.legacy { "op_query" } else { "op_msg" });
    b.i64("durationMillis", took.as_millis() as i64);
}

/// The command as it came but for secrets, up to `maxLogSizeKB`.
fn append_command(c: &mut DocBuilder, ctx: &OpCtx, shown: &RawDoc) {
    let limit = ctx.instance().params.int(crate::params::Param::maxLogSizeKB) as usize * 1024;
    for e in shown.iter() {
        if c.byte_len() + e.data().len() > limit {
            c.str("$truncated", "the command is longer than maxLogSizeKB");
            break;
        }
        c.elem(e);
    }
}

/// What the operation counted.
fn append_figures(b: &mut DocBuilder, d: &OpDebug) {
    for (name, value) in [
        ("keysExamined", d.keys_examined),
        ("docsExamined", d.docs_examined),
        ("nMatched", d.n_matched),
        ("nModified", d.n_modified),
        ("ninserted", d.n_inserted),
        ("ndeleted", d.n_deleted),
        ("nUpserted", d.n_upserted),
        ("keysInserted", d.keys_inserted),
        ("keysDeleted", d.keys_deleted),
        ("nreturned", d.n_returned),
    ] {
        if let Some(n) = value {
            b.i64(name, n as i64);
        }
    }
    if let Some(id) = d.cursor_id {
        b.i64("cursorid", id);
    }
    for (name, set) in [
        ("cursorExhausted", d.cursor_exhausted),
        ("hasSortStage", d.has_sort_stage),
        ("usedDisk", d.used_disk),
    ] {
        if set {
            b.bool(name, true);
        }
    }
    if let Some(why) = &d.replanned {
        b.bool("replanned", true).str("replanReason", why);
    }
}
