//! `_configsvrTransitionToDedicatedConfigServer`: the config servers cease to be a shard, step by step (SH-ROLE-1).

use super::leftovers::drop_leftovers;
use super::prelude::*;
use pando_config_server::CONFIG_SHARD;
use pando_env::BoxFuture;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let manager = &call.config_server.manager;
    // What lies here without belonging to anybody goes also while the writes of users are blocked.
    ctx.locks.pass_write_block();
    let clear_out = || -> BoxFuture<'_, Result<()>> { Box::pin(drop_leftovers(server, ctx)) };
    let state = manager.leave_as_shard(&call.interrupt, &call.client, &clear_out).await?;
    call.settled().await?;
    let mut r = Reply::new();
    super::remove_shard::append(&mut r.body, CONFIG_SHARD, state);
    Ok(r)
}
