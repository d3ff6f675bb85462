//! `commitTransaction`, `abortTransaction`: the end of a multi-document transaction.

use super::prelude::*;

pub(super) async fn commit(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    for arg in req.args("commitTransaction") {
        match arg.name() {
            "recoveryToken" => {}
            "commitTimestamp" => {
                return Err(Error::new(
                    ErrorCode::InvalidOptions,
                    "commitTransaction provided commitTimestamp to unprepared transaction.",
                ));
            }
            _ => return Err(arg.unknown()),
        }
    }
    server.commit_transaction(ctx).await?;
    Ok(Reply::new())
}

pub(super) async fn abort(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    for arg in req.args("abortTransaction") {
        if arg.name() != "recoveryToken" {
            return Err(arg.unknown());
        }
    }
    server.abort_transaction(ctx)?;
    Ok(Reply::new())
}
