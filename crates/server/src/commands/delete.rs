//! `delete`: a list of statements `{q, limit, ...}` against one collection.

use super::prelude::*;
use crate::statements::DeleteStatement;
use crate::writes::{Outcome, Retry, check_batch_size, ends_command};
use pando_command::Args;
use pando_command::args::safe_i64;
use pando_command::request::missing;
use pando_query::plan::Hint;

pub(super) fn parse_statement(doc: &RawDoc) -> Result<DeleteStatement<'_>> {
    const OWNER: &str = "delete.deletes";
    let mut s = DeleteStatement::default();
    let (mut q, mut limit) = (None, None);
    for arg in Args::of_doc(OWNER, doc) {
        let v = arg.value();
        match arg.name() {
            "q" => q = Some(arg.doc()?),
            // Anything that is not a number counts as 0, as in MongoDB.
            "limit" => limit = Some((safe_i64(&v).unwrap_or(0), v.as_f64().unwrap_or(0.0))),
            "collation" if matches!(v, Value::Null) => {}
            "collation" => s.collation = Some(arg.doc()?).filter(|d| !d.is_empty()),
            "hint" => s.hint = Hint::parse(v)?,
            "sampleId" => {}
            _ => return Err(arg.unknown()),
        }
    }
    s.filter = q.ok_or_else(|| missing(OWNER, "q"))?;
    s.multi = match limit.ok_or_else(|| missing(OWNER, "limit"))? {
        (0, f) if f == 0.0 => true,
        (1, f) if f == 1.0 => false,
        (_, f) => {
            return Err(Error::failed_to_parse(format!(
                "The limit field in delete objects must be 0 or 1. Got {f}"
            )));
        }
    };
    Ok(s)
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (mut ordered, mut lets, mut by_uuid) = (true, None, false);
    for arg in req.args("delete") {
        if matches!(arg.value(), Value::Null) {
            continue;
        }
        match arg.name() {
            "deletes" => {}
            "ordered" => ordered = arg.bool()?,
            "let" => lets = Some(arg.doc()?),
            "collectionUUID" => by_uuid = true,
            "isTimeseriesNamespace" | "encryptionInformation" | "legacyRuntimeConstants" => {}
            _ => return Err(arg.unknown()),
        }
    }
    req.only_sequences("delete", &["deletes"])?;
    let ns = req.ns()?;
    pando_catalog::names::check_writable(&ns)?;
    let statements =
        req.required_docs("delete", "deletes")?.map(parse_statement).collect::<Result<Vec<_>>>()?;
    check_batch_size(statements.len())?;
    server.before_write(ctx).await?;
    let checked = if by_uuid { server.check_collection_uuid("delete", &req, &ns) } else { Ok(()) };
    let mut retry = Retry::begin(server, ctx, req.body).await?;
    let series = server.time_series(&ns);
    let mut out = Outcome::default();
    for (i, s) in statements.iter().enumerate() {
        server.instance.metrics.op_counters.delete.inc();
        if retry.done(i).is_some() {
            out.n += 1;
            continue;
        }
        let s = DeleteStatement { lets, index: i, ..s.clone() };
        let done = match &checked {
            Ok(()) => match &series {
                Some(series) => server.delete_measurements(ctx, series, &s, &mut retry).await,
                None => server.delete_statement(ctx, &ns, &s, &mut retry).await,
            },
            Err(e) => Err(e.clone()),
        };
        match done {
            Ok(n) => out.n += n as i64,
            Err(e) if ends_command(&e) => return Err(e),
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
    server.instance.metrics.documents.deleted.add(out.n as u64);
    server.top.add(ns.as_str(), crate::top::Kind::Remove, true, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "remove";
        d.ns = ns.to_string();
        d.n_deleted = Some(out.n as u64);
    });
    Ok(out.reply(server, ctx, &retry.retried))
}
