//! Writes of one document whose filter does not say where it is: one that matches is looked for, and written where it was found
//! if it matches still. One that was changed in between is looked for again.
//!
//! A retryable write cannot be done so: a second try might find another document, on a shard that knows nothing of the first.

use super::execute::Writes;
use super::new_id::{for_insert, new_id};
use super::targeting::{needs_key, of_document};
use crate::cursors::{Remotes, RouterCursor, Shape, Wanted};
use crate::remote::Shards;
use crate::remote::envelope::{self, Kind};
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_command::{OpCtx, Request};
use pando_metadata_cache::{Route, Target};
use pando_monitor::ReadPreference;
use pando_query::QueryCtx;
use pando_query::matcher::Matcher;
use pando_request::UpdateStatement;
use pando_rpc::Retry;

/// The shard that answered, and its reply to a command of this one statement.
pub(super) async fn run(
    shards: &Shards,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    writes: &Writes<'_>,
    i: usize,
) -> Result<(Target, DocBuf)> {
    if ctx.txn_number.is_some() && !ctx.in_txn() {
        return Err(needs_key(writes, route, &writes.docs[i]));
    }
    let statement = &*writes.docs[i];
    check_update(shards, ctx, req, route, statement)?;
    for _ in 0..limits::ROUTER_WRITE_WITHOUT_KEY_TRIES_MAX {
        let Some(found) = look(shards, ctx, req, route, statement).await? else {
            return match statement.get("upsert").is_some_and(|v| v.is_truthy()) {
                true => upsert(shards, ctx, req, route, statement).await,
                false => Ok((route.primary(), none())),
            };
        };
        let target = of_document(route, &found)?.remove(0);
        let reply = send(shards, ctx, req, writes, &target, &narrowed(statement, route, &found)).await?;
        let n = reply.get("n").and_then(|v| v.as_i64()).unwrap_or(0);
        if n > 0 || reply.get("writeErrors").is_some() {
            return Ok((target, reply));
        }
    }
    let text = "the document to be written was changed by others again and again";
    Err(Error::new(ErrorCode::WriteConflict, text))
}

/// What is wrong with an update is told before what is wrong with its filter.
fn check_update(
    shards: &Shards,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    statement: &RawDoc,
) -> Result<()> {
    if statement.elem("u").is_none() {
        return Ok(());
    }
    let s = UpdateStatement::parse(statement)?;
    let q = update_ctx(shards, ctx, req, route, &s)?;
    s.plan(&q)?;
    // What may stand in a query may not stand in what a document is made of.
    Matcher::parse_in(s.place(), s.filter, &q).map(drop)
}

fn update_ctx(
    shards: &Shards,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    s: &UpdateStatement<'_>,
) -> Result<QueryCtx> {
    let let_vars = req.body.get("let").and_then(|v| v.as_doc());
    let q = shards.query_ctx(ctx, route.table.as_deref(), s.collation, let_vars)?;
    match s.constants {
        Some(constants) if matches!(s.update, Value::Array(_)) => q.with_constants(constants),
        _ => Ok(q),
    }
}

/// `_id` and shard key of a document that matches.
async fn look(
    shards: &Shards,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    statement: &RawDoc,
) -> Result<Option<DocBuf>> {
    let doc = |name: &str| statement.get(name).and_then(|v| v.as_doc());
    let let_vars = req.body.get("let").and_then(|v| v.as_doc());
    let table = route.table.as_deref();
    let matcher = shards.condition(ctx, table, doc("q"), doc("collation"), let_vars);
    let targets = route.concerned(matcher.as_ref());
    let body = |target: &Target| {
        let mut b = DocBuilder::new();
        b.str("find", route.ns.coll()).raw_doc("filter", doc("q").unwrap_or(RawDoc::empty()));
        b.i64("limit", 1).bool("singleBatch", true);
        for (from, to) in [("collation", "collation"), ("hint", "hint")] {
            statement.get(from).into_iter().for_each(|v| _ = b.value(to, v));
        }
        let_vars.into_iter().for_each(|v| _ = b.raw_doc("let", v));
        envelope::append(&mut b, ctx, req, Kind::Read, target);
        b.finish()
    };
    let (remotes, first, _) =
        Remotes::open(shards, ctx, &targets, &ReadPreference::default(), false, body).await?;
    let mut cursor = RouterCursor::new(remotes, first, Shape { limit: Some(1), ..Shape::default() })?;
    let wanted = Wanted { docs_max: 1, ..Wanted::default() };
    Ok(cursor.fill(shards, ctx, wanted).await?.pop())
}

/// The statement for that very document, if it matches still.
fn narrowed(statement: &RawDoc, route: &Route, found: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::with_capacity(statement.byte_len() + 128);
    for e in statement {
        if e.name() != "q" {
            b.elem(e);
            continue;
        }
        b.doc("q", |q| {
            q.array("$and", |all| {
                all.doc(|d| this_one(d, route, found));
                e.value().as_doc().into_iter().for_each(|q| _ = all.raw_doc(q));
            });
        });
    }
    b.finish()
}

fn this_one(d: &mut DocBuilder, route: &Route, found: &RawDoc) {
    if let Some(id) = found.get("_id") {
        d.doc("_id", |d| _ = d.value("$eq", id));
    }
    let fields = route.table.iter().flat_map(|t| t.collection.key.fields());
    for f in fields.filter(|f| *f.path != *"_id") {
        d.doc(&*f.path, |d| _ = d.value("$eq", found.get_path(&f.path).unwrap_or(Value::Null)));
    }
}

async fn send(
    shards: &Shards,
    ctx: &OpCtx,
    req: &Request<'_>,
    writes: &Writes<'_>,
    target: &Target,
    statement: &RawDoc,
) -> Result<DocBuf> {
    let mut b = DocBuilder::new();
    b.str(writes.command, writes.ns.coll());
    writes.args.spell(&mut b);
    envelope::append(&mut b, ctx, req, Kind::Write, target);
    let retry = if ctx.in_txn() { Retry::Never } else { Retry::NotIdempotent };
    let sequences: [pando_rpc::Sequence<'_>; 1] = [(writes.field, &[statement])];
    let primary = ReadPreference::default();
    let answer = shards.call(ctx, &target.shard, &primary, &b.finish(), &sequences, retry).await?;
    Ok(answer.reply)
}

fn none() -> DocBuf {
    let mut b = DocBuilder::new();
    b.i32("n", 0).i32("nModified", 0);
    b.finish()
}

/// Nothing matches: what an upsert makes is inserted where it belongs.
async fn upsert(
    shards: &Shards,
    ctx: &OpCtx,
    req: &Request<'_>,
    route: &Route,
    statement: &RawDoc,
) -> Result<(Target, DocBuf)> {
    let s = UpdateStatement::parse(statement)?;
    let q = update_ctx(shards, ctx, req, route, &s)?;
    let new = match s.supplied() {
        Some(new) => new.to_buf(),
        None => s.plan(&q)?.upsert(s.filter, || new_id(ctx))?,
    };
    let new = for_insert(shards, ctx, &new);
    let target = of_document(route, &new)?.remove(0);
    let mut b = DocBuilder::new();
    b.str("insert", route.ns.coll());
    envelope::append(&mut b, ctx, req, Kind::Write, &target);
    let retry = if ctx.in_txn() { Retry::Never } else { Retry::NotIdempotent };
    let sequences: [pando_rpc::Sequence<'_>; 1] = [("documents", &[&*new])];
    let primary = ReadPreference::default();
    let answer = shards.call(ctx, &target.shard, &primary, &b.finish(), &sequences, retry).await?;
    if answer.reply.get("writeErrors").is_some() {
        return Ok((target, answer.reply));
    }
    let mut b = DocBuilder::new();
    b.i32("n", 1).i32("nModified", 0);
    b.array("upserted", |a| {
        a.doc(|d| {
            d.i32("index", 0).value("_id", new.get("_id").unwrap_or(Value::Null));
        });
    });
    answer.reply.elem("writeConcernError").into_iter().for_each(|e| _ = b.elem(e));
    Ok((target, b.finish()))
}
