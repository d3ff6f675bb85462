//! `planCacheClear`: forgets remembered plans, of one query shape or of all.

use super::prelude::*;
use pando_access::Collection;
use pando_query::plan::Query;
use pando_query::plan::explain::query_hash;
use pando_request::PlanCacheClearArgs;
use pando_request::read::plan_cache::QueryShape;

pub(super) async fn clear(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = PlanCacheClearArgs::parse(&req)?;
    if let Some(coll) = server.access.collection(ctx, &req.ns_of_ddl()?)? {
        match of_one(server, ctx, args.shape(), &coll)? {
            Some(query) => coll.info.plan_cache.forget_shape(&query_hash(&query)),
            None => coll.info.plan_cache.clear(),
        }
    }
    Ok(Reply::new())
}

/// The query that a command about plans names; `None` when it means all.
pub(super) fn of_one(
    server: &Server,
    ctx: &OpCtx,
    shape: QueryShape<'_>,
    coll: &Collection,
) -> Result<Option<Query>> {
    shape.of_one()?.map(|args| server.crud.reads.parse_find(ctx, &coll.ns, Some(coll), &args)).transpose()
}
