//! `distinct`: the different values of a field.

use super::prelude::*;
use crate::read::point::ReadPoint;
use crate::read::{STEPS_PER_TURN, distinct, yield_from};
use crate::views::as_aggregation;
use pando_access::Reading;
use pando_query::collation::Collation;
use pando_query::distinct_values::{DistinctValues, projection_on_root};
use pando_query::exec::{Quota, Step};
use pando_query::projection::check_path;
use pando_request::{DistinctArgs, FindArgs};

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    DistinctArgs::check_name(&req)?;
    // What the name says is looked at first, a UUID is looked up last.
    let named = server.access.readable_ns_or_uuid(&req);
    if let Err(e) = &named
        && e.code != ErrorCode::NamespaceNotFound
    {
        return Err(e.clone());
    }
    let args = DistinctArgs::parse(&req)?;
    args.find.collation.map(Collation::parse).transpose()?;
    let ns = named?;
    server.access.check_collection_uuid("distinct", &req, &ns)?;
    let reads = &*server.crud.reads;
    let point = reads.point(ctx);
    let mut values = DistinctValues::new(args.key);
    let reading = reads.read(ctx, &ns)?;
    // Stages answer for a view, and do not say when.
    let on_view = matches!(reading, Reading::View(_));
    match &reading {
        Reading::Missing => drop(reads.parse_find(ctx, &ns, None, &args.find)?),
        Reading::View(view) => {
            values.on_view(reads.view_query_ctx(ctx, view)?, args.find.collation)?;
            let only = projection_on_root(args.key);
            let find = FindArgs { projection: Some(&only), ..args.find.clone() };
            // What is wrong with the query is wrong before it becomes stages.
            reads.parse_find(ctx, &ns, None, &args.find)?;
            check_path(args.key)?;
            let spec = as_aggregation(&ns, &find)?;
            server.crud.aggregations.each(ctx, spec, &mut |doc| values.add(doc)).await?;
        }
        Reading::Collection(coll) => {
            let query = reads.parse_find(ctx, &ns, Some(coll), &args.find)?;
            values.ctx = query.ctx.clone();
            let mut source = server.access.source(ctx, coll, reads.at(point))?;
            let mut exec = distinct::plan(reads, query, args.key, &*source)?;
            loop {
                let step = exec
                    .next(&mut *source, &mut Quota::new(STEPS_PER_TURN))
                    .map_err(|e| e.context("Executor error during distinct command"))?;
                match step {
                    Step::Row(row) => values.add(RawDoc::trusted(&row.doc))?,
                    Step::NeedYield => yield_from(ctx, &exec, coll).await?,
                    Step::Eof => break,
                }
            }
            reads.note_plan(ctx, &exec, coll);
        }
    }
    server.statistics.time(&ns, crate::statistics::top::Kind::Command, false, ctx.elapsed());
    ctx.debug(|d| d.ns = ns.to_string());
    let mut r = Reply::with_capacity(values.bytes + 64);
    r.body.array("values", |a| {
        for v in values.iter() {
            a.bson(v);
        }
    });
    if let (ReadPoint::At(ts), false) = (point, on_view) {
        r.body.timestamp("atClusterTime", ts);
    }
    Ok(r)
}
