//! Commands whose effect is to do nothing: caches that this server does not have, or keeps fresh by itself.

use super::prelude::*;

/// Tailable, secondaries, oplog replay, no timeout, await data, exhaust and partial results, one bit each.
const QUERY_OPTIONS: i32 = 246;

pub(super) async fn run(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    Ok(Reply::new())
}

/// `availableQueryOptions`: the flags that a query message of old could carry.
pub(super) async fn query_options(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.i32("options", QUERY_OPTIONS);
    Ok(r)
}

pub(super) async fn user_cache(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("invalidateUserCache", &[])?;
    Ok(Reply::new())
}
