//! `setUserWriteBlockMode`: blocks the writes of users, or lets them in again.

use super::prelude::*;
use pando_request::SetUserWriteBlockModeArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let block = SetUserWriteBlockModeArgs::parse(&req)?.global;
    ctx.arguments_read()?;
    if !server.replication.member.is_replicated() {
        let text = "setUserWriteBlockMode cannot be run on standalones";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    server.upkeep.admission.before_write(ctx).await?;
    server.settings.block_user_writes(ctx, block).await?;
    Ok(Reply::new())
}
