//! `_configsvrTransitionFromDedicatedConfigServer`: the config servers become a shard, too (SH-ROLE-1).

use super::leftovers::is_of_users;
use super::prelude::*;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    // Operations that were found at the step-up, and tell all shards something, come first.
    if let Some(services) = server.replication.services() {
        ctx.interruptible(services.host.ready()).await??;
    }
    let own = || server.access.definitions().databases().into_iter().filter(|db| is_of_users(db)).collect();
    call.config_server.manager.become_shard(&call.interrupt, &call.client, own).await?;
    call.done().await
}
