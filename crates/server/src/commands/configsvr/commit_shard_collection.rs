//! `_configsvrCommitShardCollection`: a collection is sharded from now on (SH-DDL-7). Sent by the primary shard of its database:
//!
//! ```text
//! {_configsvrCommitShardCollection: 1, collection: <document of config.collections>,
//!  chunks: [<document of config.chunks>, ...], writeConcern: {w: "majority"}}
//! ─► {collectionVersion: {t, e, v}}
//! ```
//! With `giveUp: true` it is not to be committed any more, not by a command that comes late either: `collectionVersion` is there if it was.

use super::prelude::*;
use pando_bson::fields::wrong_type;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let entry = fields::required(&req, "collection")?;
    let entry = entry.as_doc().ok_or_else(|| wrong_type(req.name, "collection", &entry, &["object"]))?;
    let chunks: Vec<&RawDoc> =
        req.docs(req.name, "chunks")?.ok_or_else(|| missing(req.name, "chunks"))?.collect();
    let manager = &call.config_server.manager;
    let mut r = Reply::new();
    if req.body.get("giveUp").is_some_and(|v| v.is_truthy()) {
        let version = manager.give_up_collection(&call.interrupt, entry).await?;
        call.settled().await?;
        version.iter().for_each(|version| version.append("collectionVersion", &mut r.body));
        return Ok(r);
    }
    let version = manager.commit_collection(&call.interrupt, &call.client, entry, &chunks).await?;
    call.settled().await?;
    version.append("collectionVersion", &mut r.body);
    Ok(r)
}
