//! `connPoolStats`: outgoing connections to other members. There are no other members yet.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    for name in [
        "numClientConnections",
        "numAScopedConnections",
        "totalInUse",
        "totalAvailable",
        "totalCreated",
        "totalRefreshing",
        "totalRefreshed",
    ] {
        r.body.i32(name, 0);
    }
    r.body.doc("pools", |_| {});
    r.body.doc("hosts", |_| {});
    r.body.i32("numReplicaSetMonitorsCreated", 0);
    r.body.doc("replicaSets", |_| {});
    Ok(r)
}
