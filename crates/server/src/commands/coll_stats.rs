//! `collStats`: sizes and counts of a collection.

use super::prelude::*;
use crate::statistics::sizes::{append_series_storage, append_storage, space_of};
use pando_request::CollStatsArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let scale = CollStatsArgs::parse(&req)?.scale.unwrap_or(1);
    let mut r = Reply::with_capacity(1024);
    r.body.str("ns", ns.as_str());
    let series = server.access.time_series(&ns);
    match server.access.collection(ctx, series.as_ref().map_or(&ns, |s| &s.buckets))? {
        Some(coll) if series.is_some() => {
            let counts = server.crud.writes.open_buckets.counts(coll.uuid);
            append_series_storage(
                &mut r.body,
                &coll,
                &space_of(&server.access, None, &coll)?,
                &counts,
                scale,
            );
        }
        Some(coll) => {
            let shard = server.sharding.as_ref().and_then(|s| s.shard_name());
            append_storage(&mut r.body, &coll, &space_of(&server.access, shard, &coll)?, scale)
        }
        None => append_missing(&mut r.body),
    }
    r.body.i32("scaleFactor", scale as i32);
    Ok(r)
}

fn append_missing(b: &mut DocBuilder) {
    for name in ["size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
        b.i32(name, 0);
    }
    b.doc("indexDetails", |_| {});
    b.doc("indexSizes", |_| {});
}
