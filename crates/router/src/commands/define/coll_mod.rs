//! `collMod`: coordinated by the primary shard.

use super::super::prelude::*;
use super::on_primary::OnPrimary;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let on = OnPrimary { ns: req.ns()?, name: "_shardsvrCollMod", creates: false, retry: Retry::Idempotent };
    on.run(router, ctx, &req).await.map(|reply| handed_on(&reply))
}
