//! `update`: a list of statements `{q, u, ...}` against one collection.

use super::prelude::*;
use crate::statements::{UpdateStatement, Updated};
use crate::writes::{Outcome, Retry, WriteArgs, check_batch_size, check_statement_ids};
use pando_command::Args;
use pando_command::request::missing;
use pando_query::stage::first_look;
use pando_session::retryable::Kind;

/// One element of `updates`, as written.
pub(super) fn parse_statement(doc: &RawDoc) -> Result<UpdateStatement<'_>> {
    const OWNER: &str = "update.updates";
    let mut s = UpdateStatement::default();
    let (mut q, mut u) = (None, None);
    for arg in Args::of_doc(OWNER, doc) {
        if arg.is_absent() && matches!(arg.name(), "q" | "c" | "upsert" | "multi" | "collation" | "sampleId")
        {
            continue;
        }
        match arg.name() {
            "q" => q = Some(arg.doc()?),
            "u" => u = Some(UpdateStatement::change(&arg)?),
            "c" => s.constants = Some(arg.doc()?),
            _ if s.take(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    s.filter = q.ok_or_else(|| missing(OWNER, "q"))?;
    s.update = u.ok_or_else(|| missing(OWNER, "u"))?;
    // Stages that nobody knows are a mistake of the command, not of one of its statements.
    if let Value::Array(stages) = s.update {
        first_look(stages)?;
    }
    Ok(s)
}

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = WriteArgs::parse(&req, "update", "updates")?;
    let ns = req.ns()?;
    pando_catalog::names::check_writable(&ns)?;
    let docs = req.required_docs("update", "updates")?;
    let statements = docs.map(parse_statement).collect::<Result<Vec<_>>>()?;
    check_batch_size(statements.len())?;
    check_statement_ids(req.body, statements.len())?;
    server.before_write(ctx).await?;
    let series = server.series_to_write(&ns, args.by_buckets)?;
    let checked = server.uuid_of_write(args.by_uuid, "update", &req, &ns, series.as_ref());
    let mut retry = Retry::begin(server, ctx, req.body).await?;
    let mut out = Outcome { n_modified: Some(0), ..Outcome::default() };
    for (i, s) in statements.iter().enumerate() {
        server.instance.metrics.op_counters.update.inc();
        if let Some(done) = retry.done(i)? {
            out.n += 1;
            match done.kind {
                Kind::Update => out.n_modified = out.n_modified.map(|n| n + 1),
                _ => out.upserted.extend(server.upserted_id(&done)?.map(|id| (i, id))),
            }
            continue;
        }
        let WriteArgs { lets, bypass_validation, .. } = args;
        let s = UpdateStatement { lets, bypass_validation, index: i, ..s.clone() };
        let done = match &checked {
            Ok(()) => server.update_in(ctx, &ns, series.as_ref(), &s, &mut retry).await,
            Err(e) => Err(e.clone()),
        };
        match done {
            Ok(done) => add(&mut out, i, done),
            Err(e) if e.code.ends_command() => return Err(e),
            // What is no pipeline at all is the command's fault; statements before it stay done.
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
    let n_modified = out.n_modified.unwrap_or(0) as u64;
    server.instance.metrics.documents.updated.add(n_modified);
    server.time(&ns, crate::top::Kind::Update, true, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "update";
        d.ns = ns.to_string();
        d.n_matched = Some(out.n as u64);
        d.n_modified = Some(n_modified);
        d.n_upserted = Some(out.upserted.len() as u64);
    });
    Ok(out.reply(server, ctx, &retry.retried))
}

fn add(out: &mut Outcome, i: usize, done: Updated) {
    out.n += done.matched as i64;
    out.n_modified = out.n_modified.map(|n| n + done.modified as i64);
    if let Some(id) = done.upserted {
        out.n += 1;
        out.upserted.push((i, id));
    }
}
