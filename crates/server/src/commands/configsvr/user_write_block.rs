//! `_configsvrSetUserWriteBlockMode {1, global}`: blocks the writes of users in the whole cluster, or lets them in again (SYS-264, SYS-265). A workflow
//! does it, and goes on whoever waits for it.

use super::prelude::*;
use pando_bson::fields::wrong_type;
use pando_workflows::user_writes;

/// Returns when all shards do so.
///
/// # Errors
/// 117 while it is done the other way round.
pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let block = match fields::required(&req, "global")? {
        Value::Boolean(block) => block,
        v => return Err(wrong_type(req.name, "global", &v, &["bool"])),
    };
    let call = Call::with_majority(server, ctx)?;
    server.upkeep.admission.before_write(ctx).await?;
    super::coordinate(server, ctx, &user_writes::begin(block)).await?;
    call.done().await
}
