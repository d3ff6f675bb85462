//! `_configsvrCommitMergeAllChunksOnShard`: neighbouring chunks of a shard whose histories nobody needs become one (SH-SPLIT-2).

use super::prelude::*;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let ns = fields::own_text(&req)?;
    let shard = ShardId::new(fields::text(req.body, "shard")?);
    let max = pando_request::sharding::merge_all_chunks::max_chunks(&req)?;
    let manager = &call.config_server.manager;
    let merged = manager.merge_all_chunks(&call.interrupt, &call.client, ns, &shard, max).await?;
    call.settled().await?;
    let mut r = Reply::new();
    merged.version.append("shardVersion", &mut r.body);
    r.body.i32("numMergedChunks", i32::try_from(merged.chunks).unwrap_or(i32::MAX));
    Ok(r)
}
