//! `collStats`: sizes and counts of a collection.

use super::prelude::*;
use crate::statistics::sizes::{Space, append_space, append_storage, int, space_of};
use pando_access::Collection;
use pando_request::CollStatsArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let scale = CollStatsArgs::parse(&req)?.scale.unwrap_or(1);
    let mut r = Reply::with_capacity(1024);
    r.body.str("ns", ns.as_str());
    let series = server.access.time_series(&ns);
    match server.access.collection(ctx, series.as_ref().map_or(&ns, |s| &s.buckets))? {
        Some(coll) if series.is_some() => append_series_storage(server, &mut r.body, &coll, scale)?,
        Some(coll) => append_storage(&mut r.body, &coll, &space_of(&server.access, &coll)?, scale),
        None => append_missing(&mut r.body),
    }
    r.body.i32("scaleFactor", scale as i32);
    Ok(r)
}

/// Of a time series, whose collection of buckets `c` is: there is no count of measurements.
fn append_series_storage(server: &Server, b: &mut DocBuilder, c: &Collection, scale: i64) -> Result<()> {
    let space = space_of(&server.access, c)?;
    let Space { count, data, .. } = space;
    int(b, "size", data / scale as u64);
    b.doc("timeseries", |d| {
        d.str("bucketsNs", c.ns.as_str());
        int(d, "bucketCount", count);
        if count > 0 {
            int(d, "avgBucketSize", data / count);
        }
        server.crud.writes.open_buckets.counts(c.uuid).append_to(d);
    });
    append_space(b, c, &space, scale);
    Ok(())
}

fn append_missing(b: &mut DocBuilder) {
    for name in ["size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
        b.i32(name, 0);
    }
    b.doc("indexDetails", |_| {});
    b.doc("indexSizes", |_| {});
}
