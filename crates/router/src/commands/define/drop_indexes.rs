//! `dropIndexes`: coordinated by the primary shard.

use super::super::prelude::*;
use super::on_primary::OnPrimary;
use pando_request::DropIndexesArgs;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    DropIndexesArgs::parse(&req)?;
    ctx.arguments_read()?;
    let on = OnPrimary { ns, name: "_shardsvrDropIndexes", creates: false, retry: Retry::Idempotent };
    on.run(router, ctx, &req).await.map(|reply| handed_on(&reply))
}
