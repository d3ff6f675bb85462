//! `addShard`, `removeShard`, `listShards`: who belongs to the cluster.

use super::super::prelude::*;
use super::on_config;
use pando_audit::Event;
use pando_metadata_cache::Ask;

pub(in crate::commands) async fn add(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let reply = on_config::run(router, ctx, &req, "_configsvrAddShard").await?;
    let text = |v: Option<Value<'_>>| v.and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
    let (name, connection) = (text(reply.get("shardAdded")), text(Some(req.first().value())));
    ctx.client.audit(|| Event::add_shard(&name, &connection));
    router.catalog.refresh_shards().await?;
    Ok(handed_on(&reply))
}

pub(in crate::commands) async fn remove(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let reply = on_config::run(router, ctx, &req, "_configsvrRemoveShard").await?;
    ctx.client.audit(|| Event::remove_shard(req.first().value().as_str().unwrap_or_default()));
    router.catalog.refresh_shards().await?;
    Ok(handed_on(&reply))
}

pub(in crate::commands) async fn list(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let shards = router.catalog.read(&Ask::of("shards", DocBuf::new())).await?;
    let mut r = Reply::new();
    r.body.array("shards", |a| shards.iter().for_each(|s| _ = a.raw_doc(s)));
    Ok(r)
}
