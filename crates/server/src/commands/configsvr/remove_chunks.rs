//! `_configsvrRemoveChunks`: all chunks of a collection that is gone (SH-DDL-8).

use super::prelude::*;
use pando_bson::fields::wrong_type;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let uuid = fields::required(&req, "collectionUUID")?;
    let uuid =
        fields::uuid_of(&uuid).ok_or_else(|| wrong_type(req.name, "collectionUUID", &uuid, &["binData"]))?;
    call.as_retryable_write(5_665_000)?;
    call.config_server.manager.remove_chunks(&call.interrupt, uuid).await?;
    call.done().await
}
