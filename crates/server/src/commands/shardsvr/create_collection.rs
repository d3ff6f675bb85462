//! `_shardsvrCreateCollection`: a router's `shardCollection`, for the primary shard of the database; and what other shards do for it.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use crate::commands::shardsvr::ddl::create_collection::Wanted;
use pando_base::{Timestamp, Uuid, limits};
use pando_bson::fields::{safe_i64, wrong_type};
use pando_command::request::missing;
use pando_routing::ShardKey;
use pando_workflows::create_collection;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    check_is_no_system_collection(&ns)?;
    check_length(&ns)?;
    let body = req.body;
    if body.get("timeseries").is_some_and(|v| !matches!(v, Value::Null | Value::Undefined)) {
        let text = "Sharding a time-series collection is not supported by this server";
        return Err(Error::new(ErrorCode::CommandNotSupported, text));
    }
    let key = body.get("shardKey");
    let key = key.as_ref().and_then(|v| v.as_doc()).ok_or_else(|| missing(req.name, "shardKey"))?;
    let key = ShardKey::parse(key)?;
    let flag = |name: &str| body.get(name).map(|v| v.is_truthy());
    let unique = flag("unique") == Some(true);
    if unique && key.is_hashed() {
        let text = "Hashed shard keys cannot be declared unique. It's possible to ensure uniqueness on the hashed \
                    field by declaring an additional (non-hashed) unique index on the field.";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let chunks = body.get("numInitialChunks").and_then(|v| safe_i64(&v)).filter(|n| *n != 0);
    let too_many = |n: &i64| *n < 0 || *n > limits::INITIAL_CHUNKS_MAX as i64;
    if chunks.as_ref().is_some_and(too_many) {
        let text =
            format!("numInitialChunks cannot be more than {} or less than 0", limits::INITIAL_CHUNKS_MAX);
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let collation = body.get("collation");
    let collation = collation.as_ref().and_then(|v| v.as_doc());
    if let Some(c) = collation.filter(|c| c.get("locale").and_then(|v| v.as_str()) != Some("simple")) {
        let text = format!("The collation for shardCollection must be {{locale: 'simple'}}, but found: {c}");
        return Err(Error::bad_value(text));
    }
    server.upkeep.admission.before_write(ctx).await?;
    let makes_index = flag("implicitlyCreateIndex") != Some(false);
    let chunks = chunks.map(|n| n as usize);
    let presplit = flag("presplitHashedZones") == Some(true);
    let wanted = Wanted { ns, key, unique, chunks, presplit, collation, makes_index };
    let (ns, request) = (wanted.ns.as_str(), wanted.to_request());
    let result = Ddl::new(server, ctx)?.coordinate(ns, create_collection::OPERATION, &request).await?;
    let mut r = Reply::new();
    r.body.elems_of(&result);
    Ok(r)
}

fn check_is_no_system_collection(ns: &Namespace) -> Result<()> {
    if ns.coll().starts_with("system.buckets.") {
        return Err(Error::location(5_731_501, "Sharding a buckets collection is not allowed"));
    }
    if ns.coll().starts_with("system.") {
        return Err(Error::new(ErrorCode::IllegalOperation, "can't shard system namespaces"));
    }
    Ok(())
}

/// Shards keep what they know of its chunks in a collection whose name begins with `config.cache.chunks.`.
fn check_length(ns: &Namespace) -> Result<()> {
    if ns.as_str().len() <= limits::SHARDED_NAMESPACE_BYTES_MAX {
        return Ok(());
    }
    let text = format!("Namespace too long. Namespace: {ns} Max: {}", limits::SHARDED_NAMESPACE_BYTES_MAX);
    Err(Error::new(ErrorCode::InvalidNamespace, text))
}

pub(in crate::commands) async fn participant(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let ns = req.ns()?;
    let uuid = match req.body.get("collectionUUID") {
        Some(Value::Binary { subtype: 4, bytes }) => Uuid::from_slice(bytes),
        _ => None,
    };
    let uuid = uuid.ok_or_else(|| missing(req.name, "collectionUUID"))?;
    let options = req.body.get("options").and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
    let indexes = req.body.get("indexes").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    server.upkeep.admission.before_write(ctx).await?;
    let at = number_of(&req)?;
    Ddl::new(server, ctx)?.create_as_told(&ns, uuid, options, indexes, at).await?;
    Ok(Reply::new())
}

/// The number of the definition (see `pando_workflows::ddl`); who does not know of them sends none.
pub(super) fn number_of(req: &Request<'_>) -> Result<Option<Timestamp>> {
    match req.body.get("timestamp") {
        None => Ok(None),
        Some(Value::Timestamp(at)) => Ok(Some(at)),
        Some(v) => Err(wrong_type(req.name, "timestamp", &v, &["timestamp"])),
    }
}
