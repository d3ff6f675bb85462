//! Sizes of collections, as commands and stages tell them.

use crate::sharding::orphans;
use crate::timeseries::BucketCounts;
use pando_access::{Access, Collection, Definitions};
use pando_base::Result;
use pando_bson::DocBuilder;

/// Smallest unit of space that statistics show.
const PAGE: u64 = 4096;

/// Bytes of one collection as statistics show them. (Compression and versions not yet compacted make what is on
/// disk differ.)
pub(crate) struct Space {
    pub(crate) count: u64,
    /// Of the documents.
    pub(crate) data: u64,
    /// The same in whole pages.
    pub(crate) storage: u64,
    /// Those of a shard that are another's.
    pub(crate) orphans: u64,
    /// Name and estimated bytes of each ready index.
    pub(crate) indexes: Vec<(String, u64)>,
}

impl Space {
    pub(crate) fn index_total(&self) -> u64 {
        self.indexes.iter().map(|(_, n)| n).sum()
    }
}

fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE).max(PAGE)
}

/// Of one collection.
pub(crate) fn space_of(access: &Access, shard: Option<&str>, c: &Collection) -> Result<Space> {
    let s = access.stats_of(c)?;
    let indexes = s.index_bytes.into_iter().map(|(name, n)| (name, pages(n))).collect();
    let orphans = orphans::counted(access, shard, c)?;
    Ok(Space { orphans, count: s.count, data: s.bytes, storage: pages(s.storage_bytes), indexes })
}

/// Bytes that a database takes: documents and an estimate of its index entries.
pub(crate) fn database_bytes(access: &Access, definitions: &Definitions, db: &str) -> Result<u64> {
    let mut total = 0;
    for c in definitions.collections(db) {
        let space = space_of(access, None, &c)?;
        total += space.storage + space.index_total();
    }
    Ok(total)
}

/// As 32 bits where they hold it.
pub(crate) fn int(b: &mut DocBuilder, name: &str, n: u64) {
    match i32::try_from(n) {
        Ok(n) => b.i32(name, n),
        Err(_) => b.i64(name, n as i64),
    };
}

/// What `collStats` and `storageStats` of the `$collStats` stage tell of a collection.
pub(crate) fn append_storage(b: &mut DocBuilder, c: &Collection, space: &Space, scale: i64) {
    let Space { count, data, .. } = *space;
    int(b, "size", data / scale as u64);
    int(b, "count", count);
    if count > 0 {
        int(b, "avgObjSize", data / count);
    }
    append_space(b, c, space, scale);
}

/// Of a time series, whose collection of buckets `c` is: there is no count of measurements.
pub(crate) fn append_series_storage(
    b: &mut DocBuilder,
    c: &Collection,
    space: &Space,
    counts: &BucketCounts,
    scale: i64,
) {
    let Space { count, data, .. } = *space;
    int(b, "size", data / scale as u64);
    b.doc("timeseries", |d| {
        d.str("bucketsNs", c.ns.as_str());
        int(d, "bucketCount", count);
        if count > 0 {
            int(d, "avgBucketSize", data / count);
        }
        counts.append_to(d);
    });
    append_space(b, c, space, scale);
}

/// The part that is told of both.
fn append_space(b: &mut DocBuilder, c: &Collection, space: &Space, scale: i64) {
    let scale = scale as u64;
    let storage = space.storage;
    let index_total = space.index_total();
    int(b, "numOrphanDocs", space.orphans);
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
