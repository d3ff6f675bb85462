//! `_shardsvrMoveRange {<ns>, toShard, min, max}`: a range of this shard's moves to another one (SH-MIG-1).

use super::range;
use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use pando_command::request::missing;
use pando_workflows::migration::{self, Migration};

/// Returns when the range has moved. The same that is under way already is joined.
///
/// # Errors
/// 117 while another range moves to or from this shard; whatever the migration was given up for.
pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str(req.name)?)?;
    let ddl = Ddl::new(server, ctx)?;
    let bound = |name: &'static str| {
        req.body.get(name).and_then(|v| v.as_doc().map(RawDoc::to_buf)).ok_or_else(|| missing(req.name, name))
    };
    let (min, max) = (bound("min")?, bound("max")?);
    let max = match req
        .body
        .get("maxChunkSizeBytes")
        .and_then(|v| v.as_i64())
        .and_then(|n| u64::try_from(n).ok())
    {
        Some(bytes) if bytes > 0 => as_much_as(&ddl, &ns, &min, max, bytes).await?,
        _ => max,
    };
    let to = req.body.get("toShard").and_then(|v| v.as_str().map(str::to_owned));
    let to = to.ok_or_else(|| missing(req.name, "toShard"))?;
    if to == ddl.own_id().as_str() {
        let text = format!("the range [{min}, {max}) of {ns} is on shard {to} already");
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    server.upkeep.admission.before_write(ctx).await?;
    let host = ddl.host()?;
    let receiving = ctx.interruptible(host.all(migration::RECIPIENT)).await??;
    if let Some(other) = receiving.first() {
        let text = format!(
            "Unable to start new balancer operation because this shard is currently receiving range: {}",
            other.state()
        );
        return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
    }
    let same = |m: &Migration| m.ns == ns && m.min == min && m.max == max && m.recipient == to;
    let giving = ctx.interruptible(host.all(migration::DONOR)).await??;
    if let Some(other) = giving.first() {
        let state = other.state();
        if !Migration::parse(&state).is_some_and(|m| same(&m)) {
            let text = format!(
                "Unable to start new balancer operation because this shard is currently donating range: {state}"
            );
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        ctx.interruptible(other.result()).await??;
        return Ok(Reply::new());
    }
    let id = server.upkeep.maintenance.new_uuid();
    let mut b = DocBuilder::new();
    b.uuid("_id", &id.0).str("nss", ns.as_str());
    b.str("donorShardId", ddl.own_id().as_str()).str("recipientShardId", &to);
    b.doc("range", |d| _ = d.raw_doc("min", &min).raw_doc("max", &max));
    let waits = req.body.get("waitForDelete").is_some_and(|v| v.is_truthy());
    b.doc("request", |d| _ = d.bool("waitForDelete", waits));
    let instance = ctx.interruptible(host.start(migration::DONOR, &b.finish())).await??;
    let done = ctx.interruptible(instance.result()).await?;
    ctx.wrote(server.replication.last_applied());
    done?;
    if waits {
        ddl.await_deletion(id).await?;
    }
    Ok(Reply::new())
}

/// The end of what comes to so many bytes from `min` on, by the mean size of documents.
async fn as_much_as(ddl: &Ddl<'_>, ns: &Namespace, min: &RawDoc, max: DocBuf, bytes: u64) -> Result<DocBuf> {
    ddl.sharding.refresh_anew(ns).await?;
    let known = ddl.sharding.metadata.known(ns);
    let Some(table) = known.table() else { return Ok(max) };
    let coll = ddl.server.access.definitions().collection(ns).cloned();
    let Some(coll) = coll.filter(|c| c.uuid == table.collection.uuid) else { return Ok(max) };
    let stats = ddl.server.access.stats_of(&coll)?;
    let mean = stats.bytes.checked_div(stats.count).unwrap_or(0).max(1);
    let count = usize::try_from(bytes / mean).unwrap_or(usize::MAX).max(1);
    let range = range::bounded(ddl, ns, table, min, &max)?;
    let end = ddl.server.upkeep.maintenance.end_of_first(&range, count)?;
    Ok(end.unwrap_or(max))
}
