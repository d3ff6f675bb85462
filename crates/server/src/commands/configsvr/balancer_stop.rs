//! `_configsvrBalancerStop`: chunks may not be moved to even shards out (SH-BAL-2).

use super::prelude::*;
use pando_base::limits;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    call.config_server.manager.set_balancer(&call.interrupt, &call.client, false).await?;
    // The round that is under way ends first.
    while call.config_server.rounds.in_round.load(Relaxed) {
        ctx.interruptible(ctx.env().clock.sleep(Duration::from_millis(limits::MIGRATION_POLL_MS))).await?;
    }
    call.done().await
}
