//! `create`: a collection or view that is not sharded, on the primary shard.

use super::super::prelude::*;
use super::on_primary::OnPrimary;
use pando_request::CreateArgs;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let args = CreateArgs::parse(&req)?;
    ctx.arguments_read()?;
    // `temp` is among them, which only servers may ask for.
    args.check_form(&ns)?;
    let on = OnPrimary { ns, name: "create", creates: true, retry: Retry::NotIdempotent };
    on.run(router, ctx, &req).await.map(|reply| handed_on(&reply))
}
