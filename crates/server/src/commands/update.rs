//! `update`: a list of statements `{q, u, ...}` against one collection.

use super::prelude::*;
use crate::find_args::bool_field;
use crate::statements::{UpdateStatement, Updated};
use crate::writes::{Outcome, Retry, check_batch_size, ends_command};
use pando_command::Args;
use pando_command::request::{missing, wrong_type};
use pando_query::plan::Hint;
use pando_session::retryable::Kind;

/// One element of `updates`, as written.
pub(super) fn parse_statement(doc: &RawDoc) -> Result<UpdateStatement<'_>> {
    const OWNER: &str = "update.updates";
    let mut s = UpdateStatement::default();
    let (mut q, mut u) = (None, None);
    for arg in Args::of_doc(OWNER, doc) {
        let v = arg.value();
        if matches!(v, Value::Null) && !matches!(arg.name(), "u") {
            continue;
        }
        match arg.name() {
            "q" => q = Some(arg.doc()?),
            "u" => match v {
                Value::Document(_) | Value::Array(_) => u = Some(v),
                _ => {
                    return Err(Error::failed_to_parse(
                        "Update argument must be either an object or an array",
                    ));
                }
            },
            "c" => s.constants = Some(arg.doc()?),
            "multi" => s.multi = arg.bool()?,
            "upsert" => s.upsert = arg.bool()?,
            "collation" => s.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
            "arrayFilters" => {
                let filters = arg.array()?;
                if let Some(bad) = filters.iter().find(|e| e.value().as_doc().is_none()) {
                    let path = format!("arrayFilters.{}", bad.name());
                    return Err(wrong_type(OWNER, &path, &bad.value(), &["object"]));
                }
                s.array_filters = Some(filters);
            }
            "hint" => s.hint = Hint::parse(v)?,
            "upsertSupplied" => s.upsert_supplied = bool_field(&arg)?,
            "sampleId" => {}
            _ => return Err(arg.unknown()),
        }
    }
    s.filter = q.ok_or_else(|| missing(OWNER, "q"))?;
    s.update = u.ok_or_else(|| missing(OWNER, "u"))?;
    Ok(s)
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (mut ordered, mut bypass, mut lets, mut by_uuid) = (true, false, None, false);
    for arg in req.args("update") {
        if matches!(arg.value(), Value::Null) {
            continue;
        }
        match arg.name() {
            "updates" => {}
            "ordered" => ordered = arg.bool()?,
            "bypassDocumentValidation" => bypass = arg.boolish()?,
            "let" => lets = Some(arg.doc()?),
            "collectionUUID" => by_uuid = true,
            "isTimeseriesNamespace" | "encryptionInformation" | "legacyRuntimeConstants" => {}
            _ => return Err(arg.unknown()),
        }
    }
    req.only_sequences("update", &["updates"])?;
    let ns = req.ns()?;
    pando_catalog::names::check_writable(&ns)?;
    let docs = req.required_docs("update", "updates")?;
    let statements = docs.map(parse_statement).collect::<Result<Vec<_>>>()?;
    check_batch_size(statements.len())?;
    server.before_write(ctx).await?;
    let checked = if by_uuid { server.check_collection_uuid("update", &req, &ns) } else { Ok(()) };
    let mut retry = Retry::begin(server, ctx, req.body).await?;
    let series = server.time_series(&ns);
    let mut out = Outcome { n_modified: Some(0), ..Outcome::default() };
    for (i, s) in statements.iter().enumerate() {
        server.instance.metrics.op_counters.update.inc();
        if let Some(done) = retry.done(i) {
            out.n += 1;
            match done.kind {
                Kind::Update => out.n_modified = out.n_modified.map(|n| n + 1),
                _ => out.upserted.extend(done.inserted_id.map(|id| (i, id))),
            }
            continue;
        }
        let s = UpdateStatement { lets, bypass_validation: bypass, index: i, ..s.clone() };
        let done = match &checked {
            Ok(()) => match &series {
                Some(series) => server.update_measurements(ctx, series, &s, &mut retry).await,
                None => server.update_statement(ctx, &ns, &s, &mut retry).await,
            },
            Err(e) => Err(e.clone()),
        };
        match done {
            Ok(done) => add(&mut out, i, done),
            Err(e) if ends_command(&e) => return Err(e),
            // What is no pipeline at all is the command's fault; statements before it stay done.
            Err(e) if is_no_pipeline(&s) => return Err(e),
            Err(e) => {
                server.write_failed(ctx, &e)?;
                out.errors.push((i, e));
                if ordered || ctx.in_txn() {
                    break;
                }
            }
        }
        if i % 64 == 63 {
            ctx.yield_now().await?;
        }
    }
    let n_modified = out.n_modified.unwrap_or(0) as u64;
    server.instance.metrics.documents.updated.add(n_modified);
    server.top.add(ns.as_str(), crate::top::Kind::Update, true, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "update";
        d.ns = ns.to_string();
        d.n_matched = Some(out.n as u64);
        d.n_modified = Some(n_modified);
        d.n_upserted = Some(out.upserted.len() as u64);
    });
    Ok(out.reply(server, ctx, &retry.retried))
}

fn is_no_pipeline(s: &UpdateStatement<'_>) -> bool {
    matches!(s.update, Value::Array(stages) if pando_query::stage::check_names(stages).is_err())
}

fn add(out: &mut Outcome, i: usize, done: Updated) {
    out.n += done.matched as i64;
    out.n_modified = out.n_modified.map(|n| n + done.modified as i64);
    if let Some(id) = done.upserted {
        out.n += 1;
        out.upserted.push((i, id));
    }
}
