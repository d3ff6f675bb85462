//! `setUserWriteBlockMode` of a set that is no part of a cluster: blocks the writes of users, or lets them in again.

use super::prelude::*;
use crate::settings::user_writes::Blocked;
use pando_request::SetUserWriteBlockModeArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let writes = SetUserWriteBlockModeArgs::parse(&req)?.global;
    ctx.arguments_read()?;
    if server.config.cluster_role.is_some() {
        let text = "setUserWriteBlockMode cannot be run on shardsvrs nor configsvrs";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    if !server.replication.member.is_replicated() {
        let text = "setUserWriteBlockMode cannot be run on standalones";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    server.upkeep.admission.before_write(ctx).await?;
    let wrote = server.settings.block_user_writes(Blocked { definitions: false, writes }).await?;
    wrote.into_iter().for_each(|at| ctx.wrote(at));
    Ok(Reply::new())
}
