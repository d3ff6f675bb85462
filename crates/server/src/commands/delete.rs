//! `delete`: a list of statements `{q, limit, ...}` against one collection.

use super::prelude::*;
use crate::statements::DeleteStatement;
use crate::writes::{Outcome, Retry, WriteArgs, check_batch_size, check_statement_ids};
use pando_command::Args;
use pando_command::args::safe_i64;
use pando_command::request::missing;

pub(super) fn parse_statement(doc: &RawDoc) -> Result<DeleteStatement<'_>> {
    const OWNER: &str = "delete.deletes";
    let mut s = DeleteStatement::default();
    let (mut q, mut limit) = (None, None);
    for arg in Args::of_doc(OWNER, doc) {
        let v = arg.value();
        match arg.name() {
            "q" if arg.is_absent() => {}
            "q" => q = Some(arg.doc()?),
            // Anything that is not a number counts as 0, as in MongoDB.
            "limit" => limit = Some(parse_limit(&v)?),
            _ if s.take(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    s.filter = q.ok_or_else(|| missing(OWNER, "q"))?;
    s.multi = limit.ok_or_else(|| missing(OWNER, "limit"))?;
    Ok(s)
}

/// Whether all are to go that match.
fn parse_limit(v: &Value<'_>) -> Result<bool> {
    match (safe_i64(v).unwrap_or(0), number(v)) {
        (0, 0.0) => Ok(true),
        (1, 1.0) => Ok(false),
        (_, f) => {
            let text = format!("The limit field in delete objects must be 0 or 1. Got {f}");
            Err(Error::failed_to_parse(text))
        }
    }
}

fn number(v: &Value<'_>) -> f64 {
    match v {
        Value::Decimal128(d) => d.to_f64(),
        v => v.as_f64().unwrap_or(0.0),
    }
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = WriteArgs::parse(&req, "delete", "deletes")?;
    let ns = req.ns()?;
    pando_catalog::names::check_writable(&ns)?;
    let statements =
        req.required_docs("delete", "deletes")?.map(parse_statement).collect::<Result<Vec<_>>>()?;
    check_batch_size(statements.len())?;
    check_statement_ids(req.body, statements.len())?;
    server.before_write(ctx).await?;
    let series = server.series_to_write(&ns, args.by_buckets)?;
    let checked = server.uuid_of_write(args.by_uuid, "delete", &req, &ns, series.as_ref());
    let mut retry = Retry::begin(server, ctx, req.body).await?;
    let mut out = Outcome::default();
    for (i, s) in statements.iter().enumerate() {
        server.instance.metrics.op_counters.delete.inc();
        if retry.done(i)?.is_some() {
            out.n += 1;
            continue;
        }
        let s = DeleteStatement { lets: args.lets, index: i, ..s.clone() };
        let done = match &checked {
            Ok(()) => server.delete_in(ctx, &ns, series.as_ref(), &s, &mut retry).await,
            Err(e) => Err(e.clone()),
        };
        match done {
            Ok(n) => out.n += n as i64,
            Err(e) if e.code.ends_command() => return Err(e),
            Err(e) => {
                server.write_failed(ctx, &e)?;
                out.errors.push((i, e));
                if args.ordered || ctx.in_txn() {
                    break;
                }
            }
        }
        if i % 64 == 63 {
            ctx.yield_now().await?;
        }
    }
    server.instance.metrics.documents.deleted.add(out.n as u64);
    server.time(&ns, crate::top::Kind::Remove, true, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "remove";
        d.ns = ns.to_string();
        d.n_deleted = Some(out.n as u64);
    });
    Ok(out.reply(server, ctx, &retry.retried))
}
