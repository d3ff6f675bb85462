//! `transitionToDedicatedConfigServer`: the config servers cease to be a shard; asked again and again, it tells how far they are.

use super::super::prelude::*;
use super::on_config;
use pando_audit::Event;
use pando_routing::ShardId;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let reply = on_config::run(router, ctx, &req, "_configsvrTransitionToDedicatedConfigServer").await?;
    ctx.client.audit(|| Event::remove_shard(ShardId::config().as_str()));
    router.catalog.refresh_shards().await?;
    Ok(handed_on(&reply))
}
