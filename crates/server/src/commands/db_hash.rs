//! `dbHash`: digests of all collections of a database, now or as they were at a timestamp.

use super::prelude::*;
use crate::read::point::ReadPoint;
use pando_base::Timestamp;
use pando_command::ReadLevel;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    pando_request::stats::db_stats::check_name(&req)?;
    let mut only = Vec::new();
    let rc = &ctx.read_concern;
    if rc.given && !matches!(rc.level(), ReadLevel::Local | ReadLevel::Snapshot) {
        return Err(Error::new(
            ErrorCode::InvalidOptions,
            format!(
                "Command dbHash does not support {} :: caused by :: read concern not supported",
                rc.shell_text()
            ),
        ));
    }
    let mut at = server.crud.reads.point(ctx);
    for arg in req.args("dbHash") {
        match (arg.name(), arg.value()) {
            ("collections", Value::Array(names)) => {
                for e in names {
                    match e.value() {
                        Value::String(name) => only.push(name),
                        _ => return Err(Error::uncoded("collections entries have to be strings")),
                    }
                }
            }
            ("$_internalReadAtClusterTime", value) => at = ReadPoint::At(cluster_time(server, &value)?),
            _ => {}
        }
    }
    if let ReadPoint::At(ts) = at {
        check_definitions(server, req.db, ts)?;
    }
    let upto = match at {
        ReadPoint::At(ts) => ts,
        _ => Timestamp::MAX,
    };
    for coll in server.access.definitions().collections(req.db) {
        server.access.past_prepared(ctx, Some((coll, upto))).await?;
    }
    let hash = server.access.db_hash(ctx, req.db, &only, server.crud.reads.at(at)).await?;
    let mut r = Reply::with_capacity(1024);
    let b = &mut r.body;
    b.str("host", &server.config.host_port());
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

/// The timestamp of `$_internalReadAtClusterTime`.
fn cluster_time(server: &Server, value: &Value<'_>) -> Result<Timestamp> {
    let Value::Timestamp(ts) = *value else {
        return Err(Error::new(
            ErrorCode::TypeMismatch,
            "The '$_internalReadAtClusterTime' option must be a Timestamp",
        ));
    };
    let refuse = |text: String| Err(Error::new(ErrorCode::InvalidOptions, text));
    if ts.is_zero() {
        return refuse("$_internalReadAtClusterTime value must not be a null timestamp.".to_owned());
    }
    let applied = server.replication.last_applied();
    if ts > applied.ts {
        return refuse(format!(
            "$_internalReadAtClusterTime value must not be greater than the last applied opTime. Requested \
             clusterTime: {}; last applied opTime: {{ ts: {}, t: {} }}",
            ts, applied.ts, applied.t
        ));
    }
    Ok(ts)
}

/// Rows can be read back, definitions cannot: a collection that was changed since is not what it was then.
fn check_definitions(server: &Server, db: &str, at: Timestamp) -> Result<()> {
    match server.access.definitions().collections(db).iter().find(|c| c.since > at) {
        Some(c) => Err(Error::new(
            ErrorCode::SnapshotUnavailable,
            format!(
                "Unable to read from a snapshot due to pending collection catalog changes; please retry the \
                 operation. Snapshot timestamp is {at}. Collection minimum timestamp is {}",
                c.since
            ),
        )),
        None => Ok(()),
    }
}
