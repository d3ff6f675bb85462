//! `_configsvrCommitChunksMerge`: several chunks become one (SH-SPLIT-2).

use super::prelude::*;
use pando_bson::fields::wrong_type;
use pando_config_server::Merge;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let name = fields::own_text(&req)?;
    let (mut uuid, mut range, mut shard) = (None, None, None);
    for e in req.body.iter().skip(1) {
        let v = e.value();
        let expects = |what: &str| Err(wrong_type(req.name, e.name(), &v, &[what]));
        match (e.name(), v) {
            ("shard", Value::String(id)) => shard = Some(ShardId::new(id)),
            ("shard", _) => return expects("string"),
            ("collUUID", Value::Document(_)) => uuid = fields::uuid_of(&v),
            ("collUUID", _) => return expects("object"),
            ("chunkRange", Value::Document(d)) => range = Some(fields::range(d)?),
            ("chunkRange", _) => return expects("object"),
            _ => {}
        }
    }
    let shard = shard.ok_or_else(|| missing(req.name, "shard"))?;
    let uuid = uuid.ok_or_else(|| missing(req.name, "collUUID"))?;
    let (min, max) = range.ok_or_else(|| missing(req.name, "chunkRange"))?;
    if Namespace::parse(name).is_ok_and(|ns| ns.coll().is_empty()) || !name.contains('.') {
        let text = "invalid namespace specified for request";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let timestamp = fields::optional_timestamp(req.body, req.name, "timestamp")?;
    let merge = Merge { ns: name.to_owned(), uuid, timestamp, min, max, shard };
    let version = call.config_server.manager.merge(&call.interrupt, &call.client, &merge).await?;
    call.settled().await?;
    let mut r = Reply::new();
    version.append("shardVersion", &mut r.body);
    Ok(r)
}
