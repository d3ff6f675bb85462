//! `listCollections` and `listIndexes`: cursors of one shard.

use super::super::prelude::*;
use crate::cursors::{Open, Remotes, RouterCursor, Shape, Wanted, reply};
use crate::remote::call::read_preference;
use crate::remote::stale::Tries;
use pando_auth::{Authority, Target};
use pando_metadata_cache::{Route, Target as RoutedTo};
use pando_request::{ListCollectionsArgs, ListIndexesArgs};

pub(in crate::commands) async fn collections(
    router: &Router,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let args = ListCollectionsArgs::parse(&req)?;
    ctx.arguments_read()?;
    let ns = Namespace::unchecked(req.db, "$cmd.listCollections");
    // Shards see this router ask, who may see everything.
    let who = router.authority_of_asker(ctx)?.filter(|_| args.authorized == Some(true));
    let opened = match open(router, ctx, &req, &ns, Route::primary_of_database).await {
        Ok(cursor) => match who {
            Some(who) => only_own(router, ctx, cursor, &who).await,
            None => Ok(cursor),
        },
        Err(e) => Err(e),
    };
    match opened {
        Ok(cursor) => begin(router, ctx, &req, ns, cursor).await,
        Err(e) if e.code == ErrorCode::NamespaceNotFound => Ok(reply::empty(&ns)),
        Err(e) => Err(e),
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
    match open(router, ctx, &req, &ns, least).await {
        Ok(cursor) => begin(router, ctx, &req, ns, cursor).await,
        Err(e) if e.code == ErrorCode::NamespaceNotFound => {
            Err(Error::new(ErrorCode::NamespaceNotFound, format!("ns does not exist: {ns}")))
        }
        Err(e) => Err(e),
    }
}

/// The collections with which somebody may do something.
async fn only_own(
    router: &Router,
    ctx: &OpCtx,
    mut cursor: RouterCursor,
    who: &Authority,
) -> Result<RouterCursor> {
    let mut docs = Vec::new();
    while !cursor.is_over() {
        docs.extend(cursor.fill(router, ctx, Wanted { docs_max: u64::MAX, ..Wanted::default() }).await?);
    }
    docs.retain(|doc| {
        let name = doc.get("name").and_then(|v| v.as_str()).unwrap_or_default().to_owned();
        who.has_anything_on(Target::Collection(&ctx.db, &name))
    });
    RouterCursor::with_documents(Remotes::none(router, ctx), docs, Shape::default())
}

async fn begin(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    ns: Namespace,
    cursor: RouterCursor,
) -> Result<Reply> {
    let size = req.body.get("cursor").and_then(|v| v.as_doc()?.get("batchSize")?.as_i64());
    // Shells and tools read only the first batch, unless they ask for small ones.
    let batch_size = Some(size.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX));
    let open = Open { batch_size, ..Open::new(ns) };
    router.begin(ctx, req, open, cursor).await
}

async fn open(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    ns: &Namespace,
    of: impl Fn(&Route) -> RoutedTo,
) -> Result<RouterCursor> {
    let mut tries = Tries::default();
    loop {
        let route = router.catalog.route(ns).await?;
        let body = |target: &RoutedTo| envelope::whole(ctx, req, Kind::Plain, target);
        let opened =
            Remotes::open(router, ctx, &[of(&route)], &read_preference(req.body)?, false, body).await;
        match opened {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            Err(e) => return Err(e),
            Ok((remotes, first, _)) => return RouterCursor::new(remotes, first, Shape::default()),
        }
    }
}
