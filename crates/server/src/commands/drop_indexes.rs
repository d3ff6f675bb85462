//! `dropIndexes`: by name, by key pattern, several by name, or all but `_id_`.

use super::prelude::*;
use crate::sharding::shard_key_indexes::{check_dropped, not_serving};
use pando_access::DropWhich;
use pando_base::Uuid;
use pando_query::timeseries::key_on_buckets;
use pando_request::DropIndexesArgs;
use pando_request::define::drop_indexes::IndexSelector;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = DropIndexesArgs::parse(&req)?;
    let ns = req.ns()?;
    let series = server.access.series_of_definition(&ns, args.by_buckets == Some(true))?;
    let on_buckets;
    let which = match (&args.index, &series) {
        (IndexSelector::Key(key), Some(s)) => {
            // What no index can be, no index is.
            on_buckets = key_on_buckets(&s.of, key)
                .map_err(|e| Error::new(ErrorCode::IndexNotFound, e.message.to_string()))?;
            DropWhich::Key(&on_buckets)
        }
        (index, _) => selected(index),
    };
    ctx.arguments_read()?;
    let ns = series.as_ref().map_or(ns, |s| s.buckets.clone());
    if let Some(uuid) = args.collection_uuid {
        server.access.check_uuid(&ns, Uuid(uuid))?;
    }
    server.upkeep.admission.before_write(ctx).await?;
    let spared = spared(server, ctx, &ns, &which).await?;
    let names: Option<Vec<&str>> = spared.as_ref().map(|names| names.iter().map(String::as_str).collect());
    let which = names.as_deref().map_or(which, DropWhich::Names);
    let mut done = server.access.drop_indexes(ctx, &ns, which).await?;
    if spared.is_some() {
        done.msg = Some("non-_id indexes and non-shard key indexes dropped for collection");
    }
    ctx.wrote(done.last);
    let mut r = Reply::new();
    r.body.i32("nIndexesWas", done.were as i32);
    if let Some(msg) = done.msg {
        r.body.str("msg", msg);
    }
    Ok(r)
}

fn selected<'a>(index: &'a IndexSelector<'a>) -> DropWhich<'a> {
    match index {
        IndexSelector::All => DropWhich::All,
        IndexSelector::Name(name) => DropWhich::Name(name),
        IndexSelector::Names(names) => DropWhich::Names(names),
        IndexSelector::Key(key) => DropWhich::Key(key),
    }
}

/// 370 before anybody has dropped anything, for whoever has other shards drop it first.
pub(super) async fn check(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<()> {
    let args = DropIndexesArgs::parse(&req)?;
    spared(server, ctx, &req.ns()?, &selected(&args.index)).await.map(drop)
}

/// Of a sharded collection: what `"*"` drops, which is not all. What is named may go, or is refused.
async fn spared(
    server: &Server,
    ctx: &OpCtx,
    ns: &Namespace,
    which: &DropWhich<'_>,
) -> Result<Option<Vec<String>>> {
    let Some(sharding) = &server.sharding else { return Ok(None) };
    let Some(key) = sharding.shard_key(&server.access, ctx, ns).await? else { return Ok(None) };
    let Some(coll) = server.access.definitions().collection(ns).cloned() else { return Ok(None) };
    if matches!(which, DropWhich::All | DropWhich::Name("*")) {
        return Ok(Some(not_serving(&coll, &key)));
    }
    check_dropped(&coll, &key, which).map(|()| None)
}
