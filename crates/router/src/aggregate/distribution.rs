//! `$shardedDataDistribution`: how much of each sharded collection every shard has.

use crate::Router;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc, Value};
use pando_command::OpCtx;
use pando_metadata_cache::{Ask, Target};
use pando_monitor::ReadPreference;
use pando_rpc::Retry;

const NAME: &str = "$shardedDataDistribution";

/// The pipeline with what the stage tells in its place, where it begins with that.
pub(crate) async fn told(
    router: &Router,
    ctx: &OpCtx,
    ns: &Namespace,
    pipeline: &RawDoc,
) -> Result<Option<DocBuf>> {
    let first = pipeline.first().and_then(|e| e.value().as_doc()?.first());
    let Some(stage) = first.filter(|e| e.name() == NAME) else { return Ok(None) };
    if !matches!(stage.value(), Value::Document(d) if d.is_empty()) {
        let text = format!("The {NAME} stage specification must be an empty object");
        return Err(Error::location(6_789_100, text));
    }
    if !(ns.db() == "admin" && ns.coll() == "$cmd.aggregate") {
        let text = format!("{NAME} must be run against the 'admin' database with {{aggregate: 1}}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let mut rows = ArrayBuilder::new();
    for entry in router.catalog.read(&Ask::of("collections", DocBuf::new())).await? {
        let name = entry.get("_id").and_then(|v| v.as_str()).unwrap_or_default();
        let Ok(ns) = Namespace::parse(name) else { continue };
        if let Some(row) = row(router, ctx, &ns).await? {
            rows.raw_doc(&row);
        }
    }
    let mut stages = ArrayBuilder::new();
    let rows = rows.finish();
    stages.doc(|d| {
        d.doc("$documents", |d| _ = d.raw_array("$literal", &rows));
    });
    pipeline.iter().skip(1).for_each(|e| _ = stages.value(e.value()));
    Ok(Some(stages.finish()))
}

/// One collection; nothing where no shard has it any more.
async fn row(router: &Router, ctx: &OpCtx, ns: &Namespace) -> Result<Option<DocBuf>> {
    let shards = router.catalog.shards().await?;
    let targets: Vec<Target> = shards.iter().map(|s| Target::unversioned(s.entry.id.clone())).collect();
    let body = |_: &Target| {
        let mut b = DocBuilder::new();
        b.str("aggregate", ns.coll());
        b.array("pipeline", |a| {
            a.doc(|d| {
                d.doc("$collStats", |d| _ = d.doc("storageStats", |_| {}));
            });
        });
        b.doc("cursor", |_| {}).str("$db", ns.db());
        b.finish()
    };
    let said = router.scatter(ctx, &targets, &ReadPreference::default(), Retry::Idempotent, body).await;
    let mut parts = ArrayBuilder::new();
    let mut any = false;
    for said in said {
        let reply = match said.result {
            Ok(answer) => answer.reply,
            Err(f) if f.code() == ErrorCode::NamespaceNotFound => continue,
            Err(f) => return Err(f.into()),
        };
        let batch = reply.get_path("cursor.firstBatch").and_then(|v| v.as_array());
        let Some(stats) = batch.and_then(|b| b.first()?.value().as_doc()?.get("storageStats")?.as_doc())
        else {
            continue;
        };
        any = true;
        parts.doc(|d| append_part(d, said.shard.as_str(), stats));
    }
    if !any {
        return Ok(None);
    }
    let mut b = DocBuilder::new();
    b.str("ns", ns.as_str()).raw_array("shards", &parts.finish());
    Ok(Some(b.finish()))
}

fn append_part(d: &mut DocBuilder, shard: &str, stats: &RawDoc) {
    let number = |name: &str| stats.get(name).and_then(|v| v.as_i64()).unwrap_or(0);
    let (all, orphans, size) = (number("count"), number("numOrphanDocs"), number("avgObjSize"));
    let owned = (all - orphans).max(0);
    d.str("shardName", shard).i32_or_i64("numOrphanedDocs", orphans);
    d.i32_or_i64("numOwnedDocuments", owned).i32_or_i64("ownedSizeBytes", size * owned);
    d.i32_or_i64("orphanedSizeBytes", size * orphans);
}
