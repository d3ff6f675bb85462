//! `_configsvrCommitChunkMigration`: a range has another owner from now on (SH-MIG-12).

use super::prelude::*;
use pando_config_server::Migration;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let body = req.body;
    let chunk = fields::object(body, "migratedChunk")?;
    let (min, max) = fields::range(chunk)?;
    let version = match chunk.get("lastmod") {
        // Newer servers give it as a part of a whole version, older ones as what is stored.
        Some(Value::Timestamp(t)) => pando_routing::ChunkVersion::new(
            fields::version(body, "fromShardCollectionVersion")?.generation,
            pando_routing::Placement::from_timestamp(t),
        ),
        _ => fields::version(chunk, "lastmod")?,
    };
    let migration = Migration {
        ns: fields::own_text_of_old(&req)?.to_owned(),
        from: ShardId::new(fields::text(body, "fromShard")?),
        to: ShardId::new(fields::text(body, "toShard")?),
        min,
        max,
        version,
        collection_version: fields::version(body, "fromShardCollectionVersion")?,
        valid_after: fields::optional_timestamp(body, req.name, "validAfter")?,
    };
    let manager = &call.config_server.manager;
    let (collection, shard) = manager.commit_migration(&call.interrupt, &call.client, &migration).await?;
    call.settled().await?;
    let mut r = Reply::new();
    collection.append("collectionVersion", &mut r.body);
    shard.append("shardVersion", &mut r.body);
    Ok(r)
}
