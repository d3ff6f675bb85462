//! `_shardsvrRefineCollectionShardKey`: a router's `refineCollectionShardKey`, for the primary shard of the database; and what other
//! shards are asked for it.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use pando_command::request::missing;
use pando_routing::ShardKey;
use pando_workflows::refine_shard_key;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let key = key_at(&req, "newShardKey")?;
    server.upkeep.admission.before_write(ctx).await?;
    let mut b = DocBuilder::new();
    b.raw_doc("newShardKey", key.pattern());
    Ddl::new(server, ctx)?.coordinate(ns.as_str(), refine_shard_key::OPERATION, &b.finish()).await?;
    Ok(Reply::new())
}

/// `_shardsvrValidateShardKeyCandidate {<coll>, key}`: whether this shard's part of the collection can have that key.
pub(in crate::commands) async fn validate(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    Ddl::new(server, ctx)?.check_shard_key_candidate(&ns, &key_at(&req, "key")?)?;
    Ok(Reply::new())
}

fn key_at(req: &Request<'_>, name: &'static str) -> Result<ShardKey> {
    let key = req.body.get(name);
    let key = key.as_ref().and_then(|v| v.as_doc()).ok_or_else(|| missing(req.name, name))?;
    ShardKey::parse(key)
}
