//! `split`, `mergeChunks`, `mergeAllChunksOnShard`, `moveChunk`, `moveRange`: which chunks there are, and whose they are.

use super::super::prelude::*;
use super::on_config;
use pando_bson::ArrayBuilder;
use pando_bson::fields::{missing, wrong_type};
use pando_bson::keystring::KeyBuilder;
use pando_metadata_cache::Route;
use pando_query::QueryCtx;
use pando_query::matcher::Matcher;
use pando_request::sharding::merge_all_chunks;
use pando_routing::chunk_map::ChunkRef;
use pando_routing::force_jumbo::FORCE_JUMBO;
use pando_routing::target::point_of;
use pando_routing::{ForceJumbo, RoutingTable, ShardId};
use pando_rpc::Retry;
use std::sync::Arc;

/// The names by which secondaries are to set the pace of a move.
const THROTTLE: [&str; 2] = ["secondaryThrottle", "_secondaryThrottle"];

/// The collection as it is now: nobody changes chunks by what was known some time ago.
async fn fresh(router: &Router, ns: &Namespace) -> Result<(Route, Arc<RoutingTable>)> {
    router.catalog.renew_collection(ns.as_str());
    let route = router.catalog.route(ns).await?;
    match route.table.clone() {
        Some(table) => Ok((route, table)),
        None => {
            let text = format!("Collection {ns} is not sharded.");
            Err(Error::new(ErrorCode::NamespaceNotSharded, text))
        }
    }
}

fn doc_of<'a>(req: &Request<'a>, name: &str) -> Option<&'a RawDoc> {
    req.body.get(name).and_then(|v| v.as_doc())
}

/// Lower and upper end, as `bounds` lists them.
fn bounds<'a>(req: &Request<'a>) -> Option<(&'a RawDoc, &'a RawDoc)> {
    let list = req.body.get("bounds").and_then(|v| v.as_array())?;
    let mut ends = list.iter().filter_map(|e| e.value().as_doc());
    Some((ends.next()?, ends.next()?))
}

/// The chunk that a query's key lies in.
fn found<'t>(table: &'t RoutingTable, query: &RawDoc) -> Result<ChunkRef<'t>> {
    let matcher = Matcher::parse(query, &QueryCtx::default())?;
    let mut key = KeyBuilder::default();
    if point_of(&table.collection.key, &matcher, &mut key)?.is_none() {
        let text = format!("no shard key found in chunk query {query}");
        return Err(Error::new(ErrorCode::ShardKeyNotFound, text));
    }
    at_key(table, key.bytes())
}

fn at_key<'t>(table: &'t RoutingTable, key: &[u8]) -> Result<ChunkRef<'t>> {
    table.chunks.find(key).ok_or_else(|| Error::internal("no chunk holds a shard key"))
}

/// The chunk with exactly these bounds.
fn bounded<'t>(table: &'t RoutingTable, (min, max): (&RawDoc, &RawDoc)) -> Result<ChunkRef<'t>> {
    let chunk = at_key(table, &table.collection.key.key_of_bound(min)?)?;
    let end = table.collection.key.key_of_bound(max)?;
    if chunk.start() != table.collection.key.key_of_bound(min)? || chunk.end() != end {
        let text = format!("no chunk found with the shard key bounds [{min}, {max})");
        return Err(Error::bad_value(text));
    }
    Ok(chunk)
}

/// A key to split at as somebody names it: all fields of the shard key, none of them an array.
fn split_key(table: &RoutingTable, middle: &RawDoc) -> Result<DocBuf> {
    let key = &table.collection.key;
    let mut b = DocBuilder::new();
    for f in key.fields() {
        match middle.get(&*f.path) {
            None | Some(Value::Array(_)) => {
                let pattern = key.pattern();
                let text = format!("new split key {middle} is not valid for shard key pattern {pattern}");
                return Err(Error::uncoded(text));
            }
            Some(v) => _ = b.value(&*f.path, v),
        }
    }
    Ok(b.finish())
}

fn append_generation(b: &mut DocBuilder, table: &RoutingTable) {
    b.object_id("epoch", table.collection.generation.epoch);
    b.timestamp("timestamp", table.collection.generation.timestamp);
}

pub(in crate::commands) async fn split(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str("split")?)?;
    let (find, middle) = (doc_of(&req, "find"), doc_of(&req, "middle"));
    let within = bounds(&req);
    if [find.is_some(), middle.is_some(), within.is_some()].iter().filter(|g| **g).count() != 1 {
        let text = "must specify exactly one of find, middle or bounds";
        return Err(Error::bad_value(text));
    }
    let (route, table) = fresh(router, &ns).await?;
    let middle = middle.map(|middle| split_key(&table, middle)).transpose()?;
    let chunk = match (find, &middle, within) {
        (Some(query), ..) => found(&table, query)?,
        (_, Some(middle), _) => at_key(&table, &table.collection.key.key_of_bound(middle)?)?,
        (_, _, Some(within)) => bounded(&table, within)?,
        _ => return Err(Error::internal("nothing says which chunk")),
    };
    let point = match middle {
        Some(middle) => middle,
        None => median(router, ctx, &ns, &table, chunk).await?,
    };
    let (min, max, shard) = (chunk.min().to_buf(), chunk.max(), chunk.shard().clone());
    if point == min {
        let text = format!("new split key {point} is a boundary key of existing chunk [{min},{max})");
        return Err(Error::uncoded(text));
    }
    let mut b = DocBuilder::new();
    b.str("splitChunk", ns.as_str()).str("from", shard.as_str());
    b.raw_doc("keyPattern", table.collection.key.pattern());
    append_generation(&mut b, &table);
    b.raw_doc("min", &min).raw_doc("max", &max);
    let mut points = ArrayBuilder::new();
    points.raw_doc(&point);
    b.raw_array("splitKeys", &points.finish());
    to_shard(router, ctx, &ns, &shard, b).await?;
    drop(route);
    Ok(Reply::new())
}

async fn to_shard(
    router: &Router,
    ctx: &OpCtx,
    ns: &Namespace,
    shard: &ShardId,
    mut b: DocBuilder,
) -> Result<DocBuf> {
    b.str("$db", "admin");
    let done = router.call_primary(ctx, shard, &b.finish(), Retry::Idempotent).await;
    router.catalog.renew_collection(ns.as_str());
    Ok(done?.reply)
}

/// The key in the middle of a chunk, as its shard counts.
async fn median(
    router: &Router,
    ctx: &OpCtx,
    ns: &Namespace,
    table: &RoutingTable,
    chunk: ChunkRef<'_>,
) -> Result<DocBuf> {
    let (min, max, shard) = (chunk.min().to_buf(), chunk.max(), chunk.shard().clone());
    let mut b = DocBuilder::new();
    b.str("splitVector", ns.as_str()).raw_doc("keyPattern", table.collection.key.pattern());
    b.raw_doc("min", &min).raw_doc("max", &max).bool("force", true).str("$db", "admin");
    let reply = router.call_primary(ctx, &shard, &b.finish(), Retry::Idempotent).await?.reply;
    let keys = reply.get("splitKeys").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    let first = keys.first().and_then(|e| e.value().as_doc().map(RawDoc::to_buf));
    first.ok_or_else(|| {
        let text = "cannot find median in chunk, possibly empty";
        Error::new(ErrorCode::CannotSplit, text)
    })
}

pub(in crate::commands) async fn merge(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str("mergeChunks")?)?;
    let Some((min, max)) = bounds(&req) else {
        return Err(Error::bad_value("must provide min and max bounds of the chunks to be merged"));
    };
    let (_, table) = fresh(router, &ns).await?;
    let shard = at_key(&table, &table.collection.key.key_of_bound(min)?)?.shard().clone();
    let mut b = DocBuilder::new();
    b.str("mergeChunks", ns.as_str());
    b.array("bounds", |a| _ = a.raw_doc(min).raw_doc(max));
    b.str("shardName", shard.as_str());
    append_generation(&mut b, &table);
    let reply = to_shard(router, ctx, &ns, &shard, b).await?;
    Ok(handed_on(&reply))
}

/// Whatever the shard owns of the collection.
pub(in crate::commands) async fn merge_all(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str("mergeAllChunksOnShard")?)?;
    let shard = req.body.get("shard").ok_or_else(|| missing(req.name, "shard"))?;
    let shard = shard.as_str().ok_or_else(|| wrong_type(req.name, "shard", &shard, &["string"]))?;
    merge_all_chunks::max_chunks(&req)?;
    let known = router.catalog.shards().await?;
    if known.get(&ShardId::new(shard)).is_none() {
        return Err(Error::new(ErrorCode::ShardNotFound, format!("Shard {shard} not found")));
    }
    fresh(router, &ns).await?;
    let mut b = DocBuilder::new();
    b.str("_shardsvrMergeAllChunksOnShard", ns.as_str()).str("shard", shard);
    merge_all_chunks::append(req.body, &mut b);
    let reply = to_shard(router, ctx, &ns, &ShardId::new(shard), b).await?;
    Ok(handed_on(&reply))
}

/// `moveChunk` and `moveRange`: the config servers have the donor do it.
pub(in crate::commands) async fn move_range(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let name = req.name;
    let ns = Namespace::parse(req.first_str(name)?)?;
    check_types(&req)?;
    let to = ["to", "toShard"].iter().find_map(|f| req.body.get(*f));
    let to = to.as_ref().and_then(|v| v.as_str());
    let to = to.ok_or_else(|| Error::bad_value("you have to specify where you want to move the chunk"))?;
    let shards = router.catalog.shards().await?;
    let known = |name: &str| {
        shards.get(&ShardId::new(name)).or_else(|| shards.of_set(name)).or_else(|| shards.of_host(name))
    };
    let to = known(to).map(|s| s.entry.id.clone()).ok_or_else(|| {
        let text =
            format!("Could not move chunk in '{ns}' to shard '{to}' because that shard does not exist");
        Error::new(ErrorCode::ShardNotFound, text)
    })?;
    let (_, table) = fresh(router, &ns).await?;
    let (min, max) = range_of(&req, &table)?;
    let mut b = DocBuilder::new();
    b.str("_configsvrMoveRange", ns.as_str()).str("toShard", to.as_str());
    min.iter().for_each(|min| _ = b.raw_doc("min", min));
    max.iter().for_each(|max| _ = b.raw_doc("max", max));
    let truthy = |names: &[&str]| names.iter().any(|n| req.body.get(*n).is_some_and(|v| v.is_truthy()));
    b.bool("waitForDelete", truthy(&["_waitForDelete", "waitForDelete"]));
    throttle(&req)?.iter().for_each(|concern| _ = b.raw_doc("secondaryThrottle", concern));
    if truthy(&[FORCE_JUMBO]) {
        ForceJumbo::Manual.append(&mut b);
    }
    let done = on_config::send(router, ctx, b, Retry::Idempotent).await;
    router.catalog.renew_collection(ns.as_str());
    done.map(|reply| handed_on(&reply))
}

/// The write concern that the recipient waits for as it copies; empty: as it sees fit.
///
/// # Errors
/// 12 for a `moveChunk` with a write concern that would mean nothing.
fn throttle(req: &Request<'_>) -> Result<Option<DocBuf>> {
    let is_asked = THROTTLE.iter().any(|name| req.body.get(*name).is_some_and(|v| v.is_truthy()));
    let concern = req.body.get("writeConcern").and_then(|v| v.as_doc().map(RawDoc::to_buf));
    match (is_asked, concern) {
        (true, concern) => Ok(Some(concern.unwrap_or_default())),
        (false, Some(_)) if req.name == "moveChunk" => {
            let text = "Cannot specify write concern when secondaryThrottle is not set";
            Err(Error::new(ErrorCode::UnsupportedFormat, text))
        }
        (false, _) => Ok(None),
    }
}

/// The range that is to move, as far as it is said: of `min` and `max` the donor finds out the other one.
fn range_of(req: &Request<'_>, table: &RoutingTable) -> Result<(Option<DocBuf>, Option<DocBuf>)> {
    let bound = |name| doc_of(req, name).map(RawDoc::to_buf);
    let ways = ["find", "bounds"].iter().filter(|name| req.body.get(**name).is_some()).count();
    match (doc_of(req, "find"), bounds(req), ways) {
        (Some(query), _, 1) => Ok(ends(found(table, query)?)),
        (_, Some(within), 1) => Ok(ends(bounded(table, within)?)),
        (_, _, 1) => Err(Error::bad_value("'bounds' are the lower and the upper end of a chunk")),
        (_, _, 0) if bound("min").is_some() || bound("max").is_some() => Ok((bound("min"), bound("max"))),
        (_, _, 0) if req.name == "moveRange" => {
            let text = "need to specify the lower bound of a range, its upper bound, or both";
            Err(Error::new(ErrorCode::InvalidOptions, text))
        }
        _ => Err(Error::uncoded(
            "need to specify either a find query, or both lower and upper ends of a chunk, but not both",
        )),
    }
}

/// What is given as something else than it must be is no other request.
fn check_types(req: &Request<'_>) -> Result<()> {
    let must_be = |names: &[&str], wanted: &[&str]| {
        for name in names {
            if let Some(v) = req.body.get(*name).filter(|v| !wanted.contains(&v.type_name())) {
                return Err(pando_bson::fields::wrong_type(req.name, name, &v, wanted));
            }
        }
        Ok(())
    };
    must_be(&["to", "toShard"], &["string"])?;
    must_be(&["find", "min", "max"], &["object"])?;
    must_be(&["bounds"], &["array"])?;
    let flag = ["bool", "double", "int", "long", "decimal"];
    must_be(&["_waitForDelete", "waitForDelete", FORCE_JUMBO], &flag)?;
    must_be(&THROTTLE, &flag)
}
fn ends(chunk: ChunkRef<'_>) -> (Option<DocBuf>, Option<DocBuf>) {
    (Some(chunk.min().to_buf()), Some(chunk.max()))
}

/// `clearJumboFlag`: a chunk may be moved again.
pub(in crate::commands) async fn clear_jumbo_flag(
    router: &Router,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str("clearJumboFlag")?)?;
    let (find, within) = (doc_of(&req, "find"), bounds(&req));
    let (_, table) = fresh(router, &ns).await?;
    let chunk = match (find, within) {
        (Some(query), None) => found(&table, query)?,
        (None, Some(within)) => bounded(&table, within)?,
        _ => {
            let text = "Must provide either 'find' or 'bounds' to the clearJumboFlag command, but not both";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
    };
    let mut b = DocBuilder::new();
    b.str("_configsvrClearJumboFlag", ns.as_str());
    b.object_id("epoch", table.collection.generation.epoch);
    b.raw_doc("minKey", chunk.min()).raw_doc("maxKey", &chunk.max());
    let reply = on_config::send(router, ctx, b, Retry::Idempotent).await?;
    Ok(handed_on(&reply))
}
