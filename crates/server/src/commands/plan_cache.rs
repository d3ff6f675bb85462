//! `planCacheClear` and the index filter commands.

use super::prelude::*;

pub(super) async fn clear(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if let Some(coll) = server.existing_collection(&req.ns_of_ddl()?)? {
        coll.info.plan_cache.clear();
    }
    Ok(Reply::new())
}

/// There are no filters to remove: `planCacheSetFilter` is not supported.
pub(super) async fn clear_filters(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.ns_of_ddl()?;
    Ok(Reply::new())
}

pub(super) async fn list_filters(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.ns_of_ddl()?;
    let mut r = Reply::new();
    r.body.array("filters", |_| {});
    Ok(r)
}
