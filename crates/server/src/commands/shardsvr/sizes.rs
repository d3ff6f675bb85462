//! `_shardsvrGetStatsForBalancing {collections: [{ns, UUID}], scaleFactor}`: how much this shard has of them, without what is to be deleted.

use super::ddl::Ddl;
use crate::commands::prelude::*;
use crate::sharding::orphans;
use pando_base::Uuid;
use pando_command::request::missing;
use pando_workflows::migration::Migration;

/// `{stats: [{namespace, collSize}]}`; zero for what is not here.
pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ddl = Ddl::new(server, ctx)?;
    let wanted = req.body.get("collections").and_then(|v| v.as_array());
    let wanted = wanted.ok_or_else(|| missing(req.name, "collections"))?;
    let scale = req.body.get("scaleFactor").and_then(|v| v.as_i64()).unwrap_or(1).max(1);
    let tasks = orphans::tasks(&server.access, ddl.own_id().as_str())?;
    let mut sizes = Vec::new();
    for one in wanted.iter().filter_map(|e| e.value().as_doc()) {
        let ns = one.get("ns").and_then(|v| v.as_str()).ok_or_else(|| missing(req.name, "ns"))?;
        let uuid = match one.get("UUID") {
            Some(Value::Binary { bytes, .. }) => Uuid::from_slice(bytes),
            _ => None,
        };
        let uuid = uuid.ok_or_else(|| missing(req.name, "UUID"))?;
        let ns = Namespace::parse(ns)?;
        let bytes = owned_bytes(&ddl, &ns, uuid, &tasks)?;
        sizes.push((ns, bytes / scale));
    }
    let mut r = Reply::new();
    r.body.array("stats", |list| {
        for (ns, bytes) in &sizes {
            list.doc(|d| _ = d.str("namespace", ns.as_str()).i64("collSize", *bytes));
        }
    });
    Ok(r)
}

/// Orphans are counted by the index, and taken to be as large as all others.
fn owned_bytes(ddl: &Ddl<'_>, ns: &Namespace, uuid: Uuid, tasks: &[Migration]) -> Result<i64> {
    let coll = ddl.server.access.definitions().collection(ns).filter(|c| c.uuid == uuid).cloned();
    let Some(coll) = coll else { return Ok(0) };
    let (bytes, count) = (coll.data_bytes() as i64, coll.count() as i64);
    let orphans = orphans::of_collection(&ddl.server.access, &coll, tasks)? as i64;
    Ok(bytes - bytes / count.max(1) * orphans.min(count))
}
