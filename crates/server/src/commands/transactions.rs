//! `prepareTransaction`, `commitTransaction`, `abortTransaction`, `coordinateCommitTransaction`: the end of a multi-document transaction.

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

/// Without participants a router asks what became of a transaction that another one has committed.
pub(super) async fn coordinate(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut participants = None;
    for arg in req.args("coordinateCommitTransaction") {
        match arg.name() {
            "participants" => participants = Some(arg.array()?),
            _ => return Err(arg.unknown()),
        }
    }
    ctx.arguments_read()?;
    check_is_within("coordinateCommitTransaction", &ctx.args)?;
    match participants {
        None => Err(Error::location(
            40414,
            "BSON field 'coordinateCommitTransaction.participants' is missing but a required field",
        )),
        Some(list) if !list.is_empty() => Err(Error::new(
            ErrorCode::CommandNotSupported,
            "commits of transactions that have written on several shards are not supported by this server",
        )),
        Some(_) => {
            server.crud.transactions.recover(ctx).await?;
            Ok(Reply::new())
        }
    }
}
