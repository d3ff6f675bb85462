//! `_configsvrEnsureChunkVersionIsGreaterThan`: a move whose end nobody knows can be committed no more (SH-MIG-13).

use super::prelude::*;
use pando_bson::fields::wrong_type;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let bound = |name: &str| {
        let v = fields::required(&req, name)?;
        v.as_doc().ok_or_else(|| wrong_type(req.name, name, &v, &["object"]))
    };
    let (min, max) = (bound("minKey")?, bound("maxKey")?);
    let version = fields::required(&req, "version")?;
    let of = fields::required(&req, "nss")?;
    let of = of.as_str().ok_or_else(|| wrong_type(req.name, "nss", &of, &["string"]))?;
    let uuid = fields::required(&req, "collectionUUID")?;
    let uuid =
        fields::uuid_of(&uuid).ok_or_else(|| wrong_type(req.name, "collectionUUID", &uuid, &["binData"]))?;
    let version = pando_routing::ChunkVersion::parse_argument(&version)?;
    let manager = &call.config_server.manager;
    manager.ensure_chunk_version_is_greater(&call.interrupt, of, uuid, (min, max), version).await?;
    call.done().await
}
