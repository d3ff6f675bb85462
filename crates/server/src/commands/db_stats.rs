//! `dbStats`: sizes and counts of a database.

use super::prelude::*;
use crate::statistics::sizes::{Space, int, space_of};
use pando_request::DbStatsArgs;
use pando_request::stats::db_stats::check_name;

/// What is told of a database that is not there, all of it zero.
const EMPTY: &[&str] = &[
    "collections",
    "views",
    "objects",
    "avgObjSize",
    "dataSize",
    "storageSize",
    "indexes",
    "indexSize",
    "totalSize",
];

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = DbStatsArgs::parse(&req)?;
    // A text is taken for a collection's name, though nothing is asked about one.
    check_name(&req)?;
    let (scale, free) = (args.scale.unwrap_or(1), args.free_storage == Some(true));
    let definitions = server.access.definitions();
    let colls = definitions.collections(req.db);
    let spaces = colls.iter().map(|c| space_of(&server.access, None, c)).collect::<Result<Vec<Space>>>()?;
    let sum = |of: fn(&Space) -> u64| spaces.iter().map(of).sum::<u64>();
    let (objects, data, storage) = (sum(|s| s.count), sum(|s| s.data), sum(|s| s.storage));
    let indexes: usize = colls.iter().map(|c| c.index_count()).sum();
    let index_size = sum(Space::index_total);
    let scaled = |n: u64| n as f64 / scale as f64;
    let mut r = Reply::with_capacity(512);
    let b = &mut r.body;
    b.str("db", req.db);
    let views = definitions.views(req.db).len();
    if colls.is_empty() && views == 0 {
        for name in EMPTY {
            b.i32(name, 0);
        }
        b.i32("scaleFactor", 1).i32("fsUsedSize", 0).i32("fsTotalSize", 0);
        return Ok(r);
    }
    int(b, "collections", colls.len() as u64);
    int(b, "views", views as u64);
    int(b, "objects", objects);
    b.f64("avgObjSize", if objects == 0 { 0.0 } else { data as f64 / objects as f64 });
    b.f64("dataSize", scaled(data));
    b.f64("storageSize", scaled(storage));
    // Space is given back by compaction; nothing in the files waits to be used again.
    if free {
        b.f64("freeStorageSize", 0.0);
    }
    int(b, "indexes", indexes as u64);
    b.f64("indexSize", scaled(index_size));
    if free {
        b.f64("indexFreeStorageSize", 0.0);
    }
    b.f64("totalSize", scaled(storage + index_size));
    if free {
        b.f64("totalFreeStorageSize", 0.0);
    }
    b.f64("scaleFactor", scale as f64);
    if let Some((total, free)) = server.config.host.disk_bytes() {
        b.f64("fsUsedSize", scaled(total.saturating_sub(free)));
        b.f64("fsTotalSize", scaled(total));
    }
    Ok(r)
}
