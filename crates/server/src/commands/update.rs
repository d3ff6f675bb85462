//! `update`: a list of statements `{q, u, ...}` against one collection.

use super::prelude::*;
use crate::transaction::write_failed;
use crate::write::statements::Updated;
use crate::write::writes::{Retry, WriteTotals};
use pando_access::check_writable;
use pando_request::UpdateArgs;
use pando_session::retryable::Kind;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let UpdateArgs { ns, write, updates } = UpdateArgs::parse(&req, |ns| {
        ctx.arguments_read()?;
        check_writable(ns)
    })?;
    server.upkeep.admission.before_write(ctx).await?;
    let series = server.access.series_to_change(ctx, &ns, write.by_buckets)?;
    let checked =
        server.access.uuid_of_write(write.collection_uuid.is_some(), "update", &req, &ns, series.as_ref());
    let mut retry = Retry::begin(&server.crud.writes, ctx, req.body).await?;
    let mut out = WriteTotals { n_modified: Some(0), ..WriteTotals::default() };
    for (i, s) in updates.iter().enumerate() {
        server.instance.metrics.op_counters.update.inc();
        if let Some(done) = retry.done(i)? {
            server.sessions.check_retried_update(&done)?;
            out.n += 1;
            match done.kind {
                Kind::Update => out.n_modified = out.n_modified.map(|n| n + 1),
                _ => out.upserted.extend(server.sessions.upserted_id(&done)?.map(|id| (i, id))),
            }
            continue;
        }
        let done = match &checked {
            Ok(()) => server.crud.writes.update(ctx, &ns, series.as_ref(), s, &mut retry).await,
            Err(e) => Err(e.clone()),
        };
        match done {
            Ok(done) => add(&mut out, i, done),
            Err(e) if e.code.ends_batch_of(i > 0) => return Err(e),
            // What is no pipeline at all is the command's fault; statements before it stay done.
            Err(e) => {
                let e = server.settled(ctx, e).await?;
                write_failed(ctx, &e)?;
                let stops = write.ordered || ctx.in_txn() || e.code.is_of_tenant();
                out.errors.push((i, e));
                if stops {
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
    server.statistics.time(&ns, crate::statistics::top::Kind::Update, true, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "update";
        d.ns = ns.to_string();
        d.n_matched = Some(out.n as u64);
        d.n_modified = Some(n_modified);
        d.n_upserted = Some(out.upserted.len() as u64);
    });
    Ok(out.reply(&server.crud.writes, ctx, &retry.retried))
}

fn add(out: &mut WriteTotals, i: usize, done: Updated) {
    out.n += done.matched as i64;
    out.n_modified = out.n_modified.map(|n| n + done.modified as i64);
    if let Some(id) = done.upserted {
        out.n += 1;
        out.upserted.push((i, id));
    }
}
