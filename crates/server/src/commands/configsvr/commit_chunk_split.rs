//! `_configsvrCommitChunkSplit`: one chunk becomes several (SH-SPLIT-1).

use super::prelude::*;
use pando_config_server::Split;

pub(in super::super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let call = Call::new(server, ctx)?;
    let body = req.body;
    let epoch = fields::object_id(body, "collEpoch")?;
    let (min, max) = fields::range(body)?;
    let mut points = Vec::new();
    for e in fields::array(body, "splitPoints")? {
        let point = e.value().as_doc().ok_or_else(|| {
            let text = format!("invalid parameter: expected an object ({})", e.name());
            Error::location(10_065, text)
        })?;
        points.push(point.to_buf());
    }
    let split = Split {
        ns: fields::own_text_of_old(&req)?.to_owned(),
        epoch,
        timestamp: fields::optional_timestamp(body, req.name, "collTimestamp")?,
        min,
        max,
        points,
        shard: ShardId::new(fields::text(body, "shard")?),
    };
    let (collection, shard) = call.config_server.manager.split(&call.interrupt, &call.client, &split).await?;
    call.settled().await?;
    let mut r = Reply::new();
    collection.append("collectionVersion", &mut r.body);
    shard.append("shardVersion", &mut r.body);
    Ok(r)
}
