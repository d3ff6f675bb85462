//! `_configsvrRemoveTags`: all zones of a collection that is gone (SH-DDL-8).

use super::prelude::*;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let of = fields::own_text(&req)?;
    call.as_retryable_write(5_748_800)?;
    call.config_server.manager.remove_tags(&call.interrupt, of).await?;
    call.done().await
}
