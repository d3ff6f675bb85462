//! `transitionFromDedicatedConfigServer`: the config servers become a shard, too.

use super::super::prelude::*;
use super::on_config;
use pando_audit::Event;
use pando_routing::ShardId;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let name = "_configsvrTransitionFromDedicatedConfigServer";
    let reply = on_config::run(router, ctx, &req, name).await?;
    ctx.client.audit(|| Event::add_shard(ShardId::config().as_str(), &router.config.configdb.text()));
    router.catalog.refresh_shards().await?;
    Ok(handed_on(&reply))
}
