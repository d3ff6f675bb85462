//! `_configsvrCommitDropCollection`: nothing of a collection is sharded any more (SH-DDL-8). Sent by the primary shard of its database:
//! `{_configsvrCommitDropCollection: <ns>, collectionUUID: <UUID>, timestamp: <of the definition>, writeConcern: {w: "majority"}}`.

use super::prelude::*;
use pando_bson::fields::wrong_type;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let of = fields::own_text(&req)?;
    let uuid = fields::required(&req, "collectionUUID")?;
    let uuid =
        fields::uuid_of(&uuid).ok_or_else(|| wrong_type(req.name, "collectionUUID", &uuid, &["binData"]))?;
    let manager = &call.config_server.manager;
    let at = fields::optional_timestamp(req.body, req.name, "timestamp")?;
    manager.commit_drop_collection(&call.interrupt, &call.client, of, uuid, at).await?;
    call.done().await
}
