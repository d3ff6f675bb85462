//! `collStats`: sizes and counts of a collection.

use super::prelude::*;
use crate::namespaces::Space;
use pando_access::Collection;
use pando_request::CollStatsArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns_of_ddl()?;
    let scale = CollStatsArgs::parse(&req)?.scale.unwrap_or(1);
    let mut r = Reply::with_capacity(1024);
    r.body.str("ns", ns.as_str());
    let series = server.access.time_series(&ns);
    match server.access.collection(ctx, series.as_ref().map_or(&ns, |s| &s.buckets))? {
        Some(coll) if series.is_some() => server.append_series_storage(&mut r.body, &coll, scale)?,
        Some(coll) => append_storage(&mut r.body, &coll, &server.space_of(&coll)?, scale),
        None => append_missing(&mut r.body),
    }
    r.body.i32("scaleFactor", scale as i32);
    Ok(r)
}

pub(crate) fn int(b: &mut DocBuilder, name: &str, n: u64) {
    match i32::try_from(n) {
        Ok(n) => b.i32(name, n),
        Err(_) => b.i64(name, n as i64),
    };
}

impl Server {
    /// Of a time series, whose collection of buckets `c` is: there is no count of measurements.
    pub(crate) fn append_series_storage(&self, b: &mut DocBuilder, c: &Collection, scale: i64) -> Result<()> {
        let space = self.space_of(c)?;
        let Space { count, data, .. } = space;
        int(b, "size", data / scale as u64);
        b.doc("timeseries", |d| {
            d.str("bucketsNs", c.ns.as_str());
            int(d, "bucketCount", count);
            if count > 0 {
                int(d, "avgBucketSize", data / count);
            }
            self.upkeep.open_buckets.counts(c.uuid).append_to(d);
        });
        append_space(b, c, &space, scale);
        Ok(())
    }
}

/// `storageStats` of the `$collStats` stage is the same.
pub(crate) fn append_storage(b: &mut DocBuilder, c: &Collection, space: &Space, scale: i64) {
    let Space { count, data, .. } = *space;
    int(b, "size", data / scale as u64);
    int(b, "count", count);
    if count > 0 {
        int(b, "avgObjSize", data / count);
    }
    append_space(b, c, space, scale);
}

fn append_space(b: &mut DocBuilder, c: &Collection, space: &Space, scale: i64) {
    let scale = scale as u64;
    let storage = space.storage;
    let index_total = space.index_total();
    b.i32("numOrphanDocs", 0);
    int(b, "storageSize", storage / scale);
    b.i32("freeStorageSize", 0);
    b.bool("capped", c.is_capped());
    if let Some(capped) = &c.options.capped {
        int(b, "max", capped.max.unwrap_or(0).max(0) as u64);
        int(b, "maxSize", capped.size.max(0) as u64 / scale);
    }
    b.i32("nindexes", c.index_count() as i32);
    b.doc("indexDetails", |_| {});
    b.array("indexBuilds", |a| {
        for i in c.building_indexes() {
            a.str(i.name());
        }
    });
    int(b, "totalIndexSize", index_total / scale);
    int(b, "totalSize", (storage + index_total) / scale);
    b.doc("indexSizes", |d| {
        for (name, size) in &space.indexes {
            int(d, name, size / scale);
        }
    });
}

fn append_missing(b: &mut DocBuilder) {
    for name in ["size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
        b.i32(name, 0);
    }
    b.doc("indexDetails", |_| {});
    b.doc("indexSizes", |_| {});
}
