//! `delete`: a list of statements `{q, limit, ...}` against one collection.

use super::prelude::*;
use crate::transaction::write_failed;
use crate::write::writes::{Retry, WriteTotals};
use pando_access::check_writable;
use pando_request::DeleteArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let DeleteArgs { ns, write, deletes } = DeleteArgs::parse(&req, |ns| {
        ctx.arguments_read()?;
        check_writable(ns)
    })?;
    server.upkeep.admission.before_write(ctx).await?;
    let series = server.access.series_to_change(ctx, &ns, write.by_buckets)?;
    let checked =
        server.access.uuid_of_write(write.collection_uuid.is_some(), "delete", &req, &ns, series.as_ref());
    let mut retry = Retry::begin(&server.crud.writes, ctx, req.body).await?;
    let mut out = WriteTotals::default();
    for (i, s) in deletes.iter().enumerate() {
        server.instance.metrics.op_counters.delete.inc();
        if retry.done(i)?.is_some() {
            out.n += 1;
            continue;
        }
        let done = match &checked {
            Ok(()) => server.crud.writes.delete(ctx, &ns, series.as_ref(), s, &mut retry).await,
            Err(e) => Err(e.clone()),
        };
        match done {
            Ok(n) => out.n += n as i64,
            Err(e) if e.code.ends_batch_of(i > 0) => return Err(e),
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
    server.instance.metrics.documents.deleted.add(out.n as u64);
    server.statistics.time(&ns, crate::statistics::top::Kind::Remove, true, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "remove";
        d.ns = ns.to_string();
        d.n_deleted = Some(out.n as u64);
    });
    Ok(out.reply(&server.crud.writes, ctx, &retry.retried))
}
