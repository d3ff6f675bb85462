//! `dbStats`: sizes and counts of a database.

use super::prelude::*;
use crate::namespaces::Space;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (mut scale, mut free) = (1, false);
    for arg in req.args("dbStats") {
        if matches!(arg.value(), Value::Null) {
            continue;
        }
        match arg.name() {
            "scale" => scale = checked_scale(&arg.value())?,
            "freeStorage" => free = arg.value().is_truthy(),
            _ => return Err(arg.unknown()),
        }
    }
    let snapshot = server.catalog.snapshot();
    let colls = snapshot.collections(req.db);
    let spaces = colls.iter().map(|c| server.space_of(c)).collect::<Result<Vec<Space>>>()?;
    let sum = |of: fn(&Space) -> u64| spaces.iter().map(of).sum::<u64>();
    let (objects, data, storage) = (sum(|s| s.count), sum(|s| s.data), sum(|s| s.storage));
    let indexes: usize = colls.iter().map(|c| c.index_count()).sum();
    let index_size = sum(Space::index_total);
    let scaled = |n: u64| n as f64 / scale as f64;
    let mut r = Reply::with_capacity(512);
    let b = &mut r.body;
    b.str("db", req.db);
    b.i64("collections", colls.len() as i64);
    b.i64("views", snapshot.views(req.db).len() as i64);
    b.i64("objects", objects as i64);
    b.f64("avgObjSize", if objects == 0 { 0.0 } else { data as f64 / objects as f64 });
    b.f64("dataSize", scaled(data));
    b.f64("storageSize", scaled(storage));
    // Space is given back by compaction; nothing in the files waits to be used again.
    if free {
        b.f64("freeStorageSize", 0.0);
    }
    b.i64("indexes", indexes as i64);
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

fn checked_scale(v: &Value<'_>) -> Result<i64> {
    match pando_command::args::safe_i64(v) {
        Some(n) if n > 0 => Ok(n),
        Some(_) => Err(Error::bad_value("scale has to be > 0")),
        None => Err(Error::bad_value("scale has to be a number > 0")),
    }
}
