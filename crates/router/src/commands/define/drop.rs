//! `drop`: the primary shard has all others drop their parts.

use super::super::prelude::*;
use super::on_primary::OnPrimary;
use pando_request::DropArgs;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    DropArgs::parse(&req)?;
    ctx.arguments_read()?;
    let on = OnPrimary { ns, name: "_shardsvrDropCollection", creates: false, retry: Retry::Idempotent };
    match on.run(router, ctx, &req).await {
        // There is nothing to drop.
        Err(e) if e.code == ErrorCode::NamespaceNotFound => Ok(Reply::new()),
        done => done.map(|reply| handed_on(&reply)),
    }
}
