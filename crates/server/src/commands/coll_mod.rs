//! `collMod`: options of a collection, view or index.

use super::prelude::*;
use crate::sharding::shard_key_indexes::check_hidden;
use pando_base::Uuid;
use pando_request::CollModArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    Ok(Reply::from_doc(&change(server, ctx, &req).await?))
}

/// What it tells beside `ok`.
pub(super) async fn change(server: &Server, ctx: &OpCtx, req: &Request<'_>) -> Result<DocBuf> {
    let args = CollModArgs::parse(req)?;
    let ns = req.ns()?;
    args.check()?;
    let series = server.access.time_series(&ns);
    if let Some(uuid) = args.collection_uuid {
        server.access.check_uuid(series.as_ref().map_or(&ns, |s| &s.buckets), Uuid(uuid))?;
    }
    server.upkeep.admission.before_write(ctx).await?;
    check_shard_key_index(server, ctx, &ns, &args).await?;
    let changes = args.changes(ns.coll());
    let done = server.access.coll_mod(ctx, &ns, &changes).await?;
    ctx.wrote(done.last);
    Ok(done.reply)
}

/// 370 for hiding the index that a sharded collection cannot be without.
async fn check_shard_key_index(
    server: &Server,
    ctx: &OpCtx,
    ns: &Namespace,
    args: &CollModArgs<'_>,
) -> Result<()> {
    let (Some(sharding), Some(change)) = (&server.sharding, &args.index) else { return Ok(()) };
    let Some(key) = sharding.shard_key(&server.access, ctx, ns).await? else { return Ok(()) };
    match server.access.definitions().collection(ns) {
        Some(coll) => check_hidden(coll, &key, change),
        None => Ok(()),
    }
}
