//! `setUserWriteBlockMode`: the config servers have every shard block the writes of users, or let them in again.

use super::super::prelude::*;
use pando_request::SetUserWriteBlockModeArgs;
use pando_rpc::Retry;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let block = SetUserWriteBlockModeArgs::parse(&req)?.global;
    ctx.arguments_read()?;
    let mut b = DocBuilder::new();
    b.i32("_configsvrSetUserWriteBlockMode", 1).bool("global", block);
    // Whoever asks again joins what is under way.
    let reply = super::on_config::send(router, ctx, b, Retry::Idempotent).await?;
    Ok(handed_on(&reply))
}
