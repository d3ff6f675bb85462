//! `getShardVersion` and `getDatabaseVersion` on a shard: what it knows, without asking anybody.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use pando_shard::Known;
use pando_shard::metadata::KnownDatabase;

pub(in crate::commands) async fn of_collection(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str(req.name)?)?;
    let ddl = Ddl::new(server, ctx)?;
    let mut r = Reply::new();
    r.body.str("configServer", &ddl.cluster.identity.config_servers());
    match ddl.sharding.metadata.known(&ns) {
        Known::Nothing => {
            r.body.str("global", "UNKNOWN");
        }
        Known::Unsharded => {
            r.body.timestamp("global", pando_base::Timestamp::ZERO);
        }
        Known::Sharded(owned) => {
            let ownership = owned.ownership();
            let version = ownership.table.shard_version(ownership.shard());
            r.body.timestamp("global", version.placement.timestamp());
            if req.body.get("fullMetadata").is_some_and(|v| v.is_truthy()) {
                append_metadata(&mut r.body, ownership);
            }
        }
    }
    Ok(r)
}

fn append_metadata(b: &mut DocBuilder, ownership: &pando_routing::Ownership) {
    let table = &ownership.table;
    b.doc("metadata", |d| {
        d.timestamp("collVersion", table.placement().timestamp());
        d.object_id("collVersionEpoch", table.collection.generation.epoch);
        d.timestamp("collVersionTimestamp", table.collection.generation.timestamp);
        d.timestamp("shardVersion", table.shard_version(ownership.shard()).placement.timestamp());
        d.object_id("shardVersionEpoch", table.collection.generation.epoch);
        d.timestamp("shardVersionTimestamp", table.collection.generation.timestamp);
        d.raw_doc("keyPattern", table.collection.key.pattern());
        d.array("chunks", |list| {
            let own = table.chunks.iter().filter(|c| c.shard() == ownership.shard());
            for chunk in own.take(pando_base::limits::SHARD_VERSION_CHUNKS_SHOWN_MAX) {
                list.array(|pair| {
                    pair.raw_doc(chunk.min()).raw_doc(&chunk.max());
                });
            }
        });
    });
}

pub(in crate::commands) async fn of_database(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let db = req.first_str(req.name)?;
    let ddl = Ddl::new(server, ctx)?;
    let mut r = Reply::new();
    match ddl.sharding.metadata.known_database(db) {
        Some(KnownDatabase::Here(version)) => version.append("dbVersion", &mut r.body),
        Some(KnownDatabase::Elsewhere) | None => {
            r.body.doc("dbVersion", |_| {});
        }
    }
    Ok(r)
}
