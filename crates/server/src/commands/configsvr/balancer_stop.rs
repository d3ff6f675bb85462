//! `_configsvrBalancerStop`: chunks may not be moved to even shards out (SH-BAL-2).

use super::prelude::*;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    call.config_server.manager.set_balancer(&call.interrupt, &call.client, false).await?;
    call.done().await
}
