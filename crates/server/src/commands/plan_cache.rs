//! `planCacheClear`: forgets remembered plans, of one query shape or of all.

use super::prelude::*;
use pando_access::Collection;
use pando_query::plan::Query;
use pando_query::plan::explain::query_hash;
use pando_request::FindArgs;

pub(super) async fn clear(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if let Some(coll) = server.access.collection(ctx, &req.ns_of_ddl()?)? {
        match shape(server, ctx, &req, &coll)? {
            Some(query) => coll.info.plan_cache.forget_shape(&query_hash(&query)),
            None => coll.info.plan_cache.clear(),
        }
    }
    Ok(Reply::new())
}

/// The query that a command about plans names; `None` when it means all.
pub(super) fn shape(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    coll: &Collection,
) -> Result<Option<Query>> {
    if req.body.elem("query").is_some() {
        return named(server, ctx, req, coll).map(Some);
    }
    match ["sort", "projection", "collation"].iter().any(|name| req.body.elem(name).is_some()) {
        true => Err(Error::bad_value("sort, projection, or collation provided without query")),
        false => Ok(None),
    }
}

/// The query named by `query`, `sort`, `projection` and `collation`.
pub(super) fn named(server: &Server, ctx: &OpCtx, req: &Request<'_>, coll: &Collection) -> Result<Query> {
    let part = |name: &str, kind: &str| match req.body.get(name) {
        None => Ok(None),
        Some(Value::Document(d) | Value::Array(d)) => Ok(Some(d)),
        Some(_) => Err(Error::bad_value(format!("{kind} field {name} must be an object"))),
    };
    let Some(filter) = part("query", "required")? else {
        return Err(Error::bad_value("required field query missing"));
    };
    let args = FindArgs {
        filter: Some(filter),
        sort: part("sort", "optional")?,
        projection: part("projection", "optional")?,
        collation: part("collation", "optional")?.filter(|d| !d.is_empty()),
        ..FindArgs::default()
    };
    server.crud.reads.parse_find(ctx, &coll.ns, Some(coll), &args)
}
