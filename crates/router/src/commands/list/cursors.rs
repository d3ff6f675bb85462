//! `listCollections` and `listIndexes`: cursors of one shard.

use super::super::prelude::*;
use crate::cursors::{Open, Remotes, RouterCursor, Shape, reply};
use crate::remote::call::read_preference;
use crate::remote::stale::Tries;
use pando_metadata_cache::{Route, Target};
use pando_request::{ListCollectionsArgs, ListIndexesArgs};

pub(in crate::commands) async fn collections(
    router: &Router,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    ListCollectionsArgs::parse(&req)?;
    ctx.arguments_read()?;
    let ns = Namespace::unchecked(req.db, "$cmd.listCollections");
    match cursor(router, ctx, &req, &ns, Route::primary_of_database).await {
        Err(e) if e.code == ErrorCode::NamespaceNotFound => Ok(reply::empty(&ns)),
        done => done,
    }
}

pub(in crate::commands) async fn indexes(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    ListIndexesArgs::parse(&req)?;
    ctx.arguments_read()?;
    // All shards with documents have the same ones.
    let least = |route: &Route| match &route.table {
        Some(table) => table
            .chunks
            .iter()
            .next()
            .map_or_else(|| route.primary(), |chunk| Route::part(table, chunk.shard())),
        None => route.primary(),
    };
    match cursor(router, ctx, &req, &ns, least).await {
        Err(e) if e.code == ErrorCode::NamespaceNotFound => {
            Err(Error::new(ErrorCode::NamespaceNotFound, format!("ns does not exist: {ns}")))
        }
        done => done,
    }
}

async fn cursor(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    ns: &Namespace,
    of: impl Fn(&Route) -> Target,
) -> Result<Reply> {
    let size = req.body.get("cursor").and_then(|v| v.as_doc()?.get("batchSize")?.as_i64());
    let mut tries = Tries::default();
    loop {
        let route = router.catalog.route(ns).await?;
        let body = |target: &Target| envelope::whole(ctx, req, Kind::Plain, target);
        let opened =
            Remotes::open(router, ctx, &[of(&route)], &read_preference(req.body)?, false, body).await;
        match opened {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            Err(e) => return Err(e),
            Ok((remotes, first, _)) => {
                let cursor = RouterCursor::new(remotes, first, Shape::default())?;
                // Shells and tools read only the first batch, unless they ask for small ones.
                let batch_size = Some(size.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX));
                let open = Open { batch_size, ..Open::new(ns.clone()) };
                return router.begin(ctx, req, open, cursor).await;
            }
        }
    }
}
