//! `prepareTransaction`, `commitTransaction`, `abortTransaction`: the end of a multi-document transaction.

use super::prelude::*;
use pando_base::Timestamp;
use pando_bson::shape::{Field, Shape};
use pando_command::transaction_rules::check_is_within;

/// What a router gives its clients along.
const RECOVERY_TOKEN: Shape = Shape::Fields(&[Field::optional("recoveryShardId", Shape::String)]);

pub(super) async fn prepare(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if let Some(arg) = req.args("prepareTransaction").next() {
        return Err(arg.unknown());
    }
    let at = server.prepare_transaction(ctx).await?;
    let mut reply = Reply::new();
    reply.body.timestamp("prepareTimestamp", at);
    Ok(reply)
}

pub(super) async fn commit(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut at = None;
    for arg in req.args("commitTransaction") {
        match arg.name() {
            "recoveryToken" | "commitTimestamp" if arg.is_absent() => {}
            "recoveryToken" => arg.check(&RECOVERY_TOKEN)?,
            "commitTimestamp" => at = Some(timestamp(&arg)?),
            _ => return Err(arg.unknown()),
        }
    }
    check_is_within("commitTransaction", &ctx.args)?;
    server.commit_transaction(ctx, at).await?;
    Ok(Reply::new())
}

fn timestamp(arg: &pando_command::Arg<'_>) -> Result<Timestamp> {
    match arg.value() {
        Value::Timestamp(ts) => Ok(ts),
        _ => Err(arg.wrong_type(&["timestamp"])),
    }
}

pub(super) async fn abort(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    for arg in req.args("abortTransaction") {
        match arg.name() {
            "recoveryToken" if arg.is_absent() => {}
            "recoveryToken" => arg.check(&RECOVERY_TOKEN)?,
            _ => return Err(arg.unknown()),
        }
    }
    check_is_within("abortTransaction", &ctx.args)?;
    server.abort_transaction(ctx).await?;
    Ok(Reply::new())
}
