//! `prepareTransaction`, `commitTransaction`, `abortTransaction`: the end of a multi-document transaction.

use super::prelude::*;
use pando_command::transaction_rules::check_is_within;
use pando_request::{AbortTransactionArgs, CommitTransactionArgs};

pub(super) async fn prepare(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if let Some(arg) = req.args("prepareTransaction").next() {
        return Err(arg.unknown());
    }
    let at = server.crud.transactions.prepare(ctx).await?;
    let mut reply = Reply::new();
    reply.body.timestamp("prepareTimestamp", at);
    Ok(reply)
}

pub(super) async fn commit(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = CommitTransactionArgs::parse(&req)?;
    ctx.arguments_read()?;
    check_is_within("commitTransaction", &ctx.args)?;
    server.crud.transactions.commit(ctx, args.commit_timestamp).await?;
    Ok(Reply::new())
}

pub(super) async fn abort(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    AbortTransactionArgs::parse(&req)?;
    ctx.arguments_read()?;
    check_is_within("abortTransaction", &ctx.args)?;
    server.crud.transactions.abort(ctx).await?;
    Ok(Reply::new())
}
