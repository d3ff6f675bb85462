//! `insert`: documents into one collection, which comes into being if it must.

use super::prelude::*;
use crate::statistics::top;
use crate::write::inserting::Inserting;
use crate::write::writes::{Retry, WriteTotals};
use pando_access::check_writable;
use pando_request::InsertArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    // tour: insert 3/9
    let args = InsertArgs::parse(&req, |ns| {
        ctx.arguments_read()?;
        check_writable(ns)
    })?;
    let (ns, docs, write) = (args.ns, args.documents, args.write);
    server.upkeep.admission.before_write(ctx).await?;
    server.instance.metrics.op_counters.insert.add(docs.len() as u64);
    let series = server.access.series_to_write(&ns, write.by_buckets)?;
    let how = Inserting {
        ordered: write.ordered,
        bypass_validation: write.bypass_validation,
        checked: server.access.uuid_of_write(
            write.collection_uuid.is_some(),
            "insert",
            &req,
            &ns,
            series.as_ref(),
        ),
        series: series.as_ref(),
    };
    let mut retry = Retry::begin(&server.crud.writes, ctx, req.body).await?;
    let mut done = server.crud.writes.insert(ctx, &ns, &docs, 0, &how, &mut retry).await?;
    for (_, e) in &mut done.errors {
        *e = server.settled(ctx, e.clone()).await?;
    }
    let out = WriteTotals { n: done.n as i64, errors: done.errors, ..WriteTotals::default() };
    server.statistics.time(&ns, top::Kind::Insert, true, ctx.elapsed());
    ctx.debug(|d| {
        d.op = "insert";
        d.ns = ns.to_string();
        d.n_inserted = Some(out.n as u64);
    });
    Ok(out.reply(&server.crud.writes, ctx, &retry.retried))
}
