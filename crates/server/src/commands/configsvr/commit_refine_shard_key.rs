//! `_configsvrCommitRefineCollectionShardKey`: fields are added to a shard key (SYS-267). Sent by the primary shard of the database:
//!
//! ```text
//! {_configsvrCommitRefineCollectionShardKey: <ns>, key: <the new key>, oldTimestamp: <of the collection>,
//!  epoch: <new>, timestamp: <new, the number of the definition>, writeConcern: {w: "majority"}}
//! ```
//! With `giveUp: true` it is not to be committed any more, not by a command that comes late either ─► `{made}`: whether it was.

use super::prelude::*;
use pando_bson::fields::wrong_type;
use pando_config_server::Refinement;
use pando_routing::{Generation, ShardKey};

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::with_majority(server, ctx)?;
    let key = fields::required(&req, "key")?;
    let key = key.as_doc().ok_or_else(|| wrong_type(req.name, "key", &key, &["object"]))?;
    let time = |name: &'static str| {
        fields::optional_timestamp(req.body, req.name, name)?.ok_or_else(|| missing(req.name, name))
    };
    let refinement = Refinement {
        ns: fields::own_text(&req)?.to_owned(),
        key: ShardKey::parse(key)?,
        old: time("oldTimestamp")?,
        new: Generation { epoch: fields::object_id(req.body, "epoch")?, timestamp: time("timestamp")? },
    };
    let manager = &call.config_server.manager;
    let mut r = Reply::new();
    if req.body.get("giveUp").is_some_and(|v| v.is_truthy()) {
        let made = manager.give_up_refinement(&call.interrupt, &refinement).await?;
        call.settled().await?;
        r.body.bool("made", made);
        return Ok(r);
    }
    manager.refine_shard_key(&call.interrupt, &call.client, &refinement).await?;
    call.settled().await?;
    Ok(r)
}
