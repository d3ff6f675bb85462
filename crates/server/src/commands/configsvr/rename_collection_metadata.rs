//! `_configsvrRenameCollectionMetadata`: a collection has another name (SYS-249). Sent by the primary shard of its database:
//!
//! ```text
//! {_configsvrRenameCollectionMetadata: <ns>, to: <ns>, collectionUUID: <UUID>, epoch: <new, where it is sharded>,
//!  targetUUID: <of a sharded collection that makes room>, timestamp: <the number of the definition>, writeConcern: {w: "majority"}}
//! ```

use super::prelude::*;
use pando_bson::fields::wrong_type;
use pando_config_server::Rename;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let uuid = |name: &'static str, v: &Value<'_>| {
        fields::uuid_of(v).ok_or_else(|| wrong_type(req.name, name, v, &["binData"]))
    };
    let target = req.body.get("targetUUID").map(|v| uuid("targetUUID", &v)).transpose()?;
    let epoch = req.body.get("epoch").map(|_| fields::object_id(req.body, "epoch")).transpose()?;
    let at = fields::optional_timestamp(req.body, req.name, "timestamp")?;
    let rename = Rename {
        from: fields::own_text(&req)?.to_owned(),
        to: fields::text(req.body, "to")?.to_owned(),
        uuid: uuid("collectionUUID", &fields::required(&req, "collectionUUID")?)?,
        epoch,
        target,
        at: at.ok_or_else(|| missing(req.name, "timestamp"))?,
    };
    call.config_server.manager.rename_collection(&call.interrupt, &call.client, &rename).await?;
    call.done().await
}
