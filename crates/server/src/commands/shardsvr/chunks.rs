//! `splitChunk`, `mergeChunks` and `_shardsvrMergeAllChunksOnShard` on the shard that owns the chunks: it has the config servers do it, and learns what they made of it.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::{Ddl, append_majority};
use pando_bson::fields::missing;
use pando_request::sharding::merge_all_chunks::{append as append_max_chunks, max_chunks};
use pando_workflows::migration::{self, Migration};

fn document<'a>(req: &Request<'a>, name: &'static str) -> Result<&'a RawDoc> {
    req.body.get(name).and_then(|v| v.as_doc()).ok_or_else(|| missing(req.name, name))
}

pub(in crate::commands) async fn split(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str(req.name)?)?;
    let ddl = Ddl::new(server, ctx)?;
    let points = req.body.get("splitKeys").and_then(|v| v.as_array());
    let points = points.ok_or_else(|| missing(req.name, "splitKeys"))?;
    let (min, max) = (document(&req, "min")?, document(&req, "max")?);
    let epoch = match req.body.get("epoch") {
        Some(Value::ObjectId(epoch)) => epoch,
        _ => return Err(missing(req.name, "epoch")),
    };
    let _locks = ddl.lock_collection(&ns).await?;
    let mut b = DocBuilder::new();
    b.str("_configsvrCommitChunkSplit", ns.as_str()).object_id("collEpoch", epoch);
    if let Some(Value::Timestamp(at)) = req.body.get("timestamp") {
        b.timestamp("collTimestamp", at);
    }
    b.raw_doc("min", min).raw_doc("max", max).raw_array("splitPoints", points);
    b.str("shard", ddl.own_id().as_str());
    append_majority(&mut b);
    b.str("$db", "admin");
    let done = ddl.on_config(&b.finish()).await;
    // Also after a failure: it may have been done all the same.
    ddl.sharding.refresh_anew(&ns).await?;
    done?;
    Ok(Reply::new())
}

pub(in crate::commands) async fn merge(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str(req.name)?)?;
    let ddl = Ddl::new(server, ctx)?;
    let bounds = req.body.get("bounds").and_then(|v| v.as_array());
    let mut ends = bounds.into_iter().flatten().filter_map(|e| e.value().as_doc());
    let (Some(min), Some(max)) = (ends.next(), ends.next()) else {
        return Err(missing(req.name, "bounds"));
    };
    let _locks = ddl.lock_collection(&ns).await?;
    ddl.sharding.refresh_anew(&ns).await?;
    let Some(table) = ddl.sharding.metadata.known(&ns).table().cloned() else {
        return Err(Error::new(ErrorCode::NamespaceNotSharded, format!("Collection {ns} is not sharded")));
    };
    let mut b = DocBuilder::new();
    b.str("_configsvrCommitChunksMerge", ns.as_str()).str("shard", ddl.own_id().as_str());
    b.doc("collUUID", |d| {
        d.uuid("uuid", &table.collection.uuid.0);
    });
    b.doc("chunkRange", |d| {
        d.raw_doc("min", min).raw_doc("max", max);
    });
    append_majority(&mut b);
    b.str("$db", "admin");
    let done = ddl.on_config(&b.finish()).await;
    ddl.sharding.refresh_anew(&ns).await?;
    done?;
    Ok(Reply::new())
}

/// A move whose chunk becomes another one meanwhile would be given up.
async fn await_moves(ddl: &Ddl<'_>, ns: &Namespace) -> Result<()> {
    let running = ddl.ctx.interruptible(ddl.host()?.all(migration::DONOR)).await??;
    for instance in running {
        if Migration::parse(&instance.state()).is_some_and(|m| m.ns == *ns) {
            // Whatever came of it.
            let _ = ddl.ctx.interruptible(instance.result()).await?;
        }
    }
    Ok(())
}

pub(in crate::commands) async fn merge_all(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str(req.name)?)?;
    let ddl = Ddl::new(server, ctx)?;
    max_chunks(&req)?;
    let _locks = ddl.lock_collection(&ns).await?;
    await_moves(&ddl, &ns).await?;
    let mut b = DocBuilder::new();
    b.str("_configsvrCommitMergeAllChunksOnShard", ns.as_str()).str("shard", ddl.own_id().as_str());
    append_max_chunks(req.body, &mut b);
    append_majority(&mut b);
    b.str("$db", "admin");
    let done = ddl.on_config(&b.finish()).await;
    ddl.sharding.refresh_anew(&ns).await?;
    let merged = done?.get("numMergedChunks").and_then(|v| v.as_i64()).unwrap_or(0);
    let mut r = Reply::new();
    r.body.i32("numMergedChunks", i32::try_from(merged).unwrap_or(i32::MAX));
    Ok(r)
}
