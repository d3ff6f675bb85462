//! `setUserWriteBlockMode`: blocks the writes of users, or lets them in again.

use super::prelude::*;
use pando_command::request::missing;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    const OWNER: &str = "setUserWriteBlockMode";
    let mut global = None;
    for arg in req.given_args(OWNER, &["global"]) {
        match arg.name() {
            "global" => global = Some(arg.bool()?),
            _ => return Err(arg.unknown()),
        }
    }
    let block = global.ok_or_else(|| missing(OWNER, "global"))?;
    ctx.arguments_read()?;
    if !server.replication.member.is_replicated() {
        let text = "setUserWriteBlockMode cannot be run on standalones";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    server.before_write(ctx).await?;
    server.settings.block_user_writes(ctx, block).await?;
    Ok(Reply::new())
}
