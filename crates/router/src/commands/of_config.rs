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

pub(super) async fn write(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    ctx.arguments_read()?;
    forward(router, ctx, &req, Kind::Write).await
}
