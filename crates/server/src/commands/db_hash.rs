//! `dbHash`: digests of all collections of a database.

use super::prelude::*;
use crate::query_cursor::ReadPoint;
use crate::writes::ByCtx;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut only = Vec::new();
    let mut at = server.read_point(ctx);
    for arg in req.args("dbHash") {
        match (arg.name(), arg.value()) {
            ("collections", Value::Array(names)) => {
                for e in names {
                    match e.value() {
                        Value::String(name) => only.push(name),
                        _ => return Err(Error::bad_value("collections entries have to be strings")),
                    }
                }
            }
            ("$_internalReadAtClusterTime", Value::Timestamp(ts)) => at = ReadPoint::At(ts),
            _ => {}
        }
    }
    let hash = server.catalog.db_hash(req.db, &only, server.read_at(at), &ByCtx(ctx)).await?;
    let mut r = Reply::with_capacity(1024);
    let b = &mut r.body;
    b.str("host", &server.host_port());
    b.doc("collections", |d| {
        for (name, _, md5) in &hash.collections {
            d.str(name, md5);
        }
    });
    b.array("capped", |a| {
        for name in &hash.capped {
            a.str(name);
        }
    });
    b.doc("uuids", |d| {
        for (name, uuid, _) in &hash.collections {
            d.uuid(name, &uuid.0);
        }
    });
    b.str("md5", &hash.md5);
    b.i32("timeMillis", ctx.elapsed().as_millis() as i32);
    Ok(r)
}
