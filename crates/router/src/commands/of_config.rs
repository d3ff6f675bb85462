//! Commands that the config servers answer for the whole cluster, under the same name.

use super::prelude::*;
use pando_routing::ShardId;
use pando_rpc::Retry;

async fn forward(router: &Router, ctx: &OpCtx, req: &Request<'_>, kind: Kind) -> Result<Reply> {
    let target = pando_metadata_cache::Target::unversioned(ShardId::config());
    let body = envelope::whole(ctx, req, kind, &target);
    let retry = if kind == Kind::Write { Retry::NotIdempotent } else { Retry::Idempotent };
    let answer = router.call_config(ctx, &body, retry).await?;
    Ok(handed_on(&answer.reply))
}

pub(super) async fn read(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    ctx.arguments_read()?;
    forward(router, ctx, &req, Kind::Plain).await
}

/// `setDefaultRWConcern`: this router's clients go by it at once, those of others within half a minute.
pub(super) async fn set_concern_defaults(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let reply = write(router, ctx, req).await?;
    router.refresh_concern_defaults().await?;
    Ok(reply)
}

pub(super) async fn write(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    ctx.arguments_read()?;
    forward(router, ctx, &req, Kind::Write).await
}
