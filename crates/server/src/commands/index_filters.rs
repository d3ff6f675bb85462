//! `planCacheSetFilter`, `planCacheListFilters`, `planCacheClearFilters`: which indexes queries of a shape may use.

use super::plan_cache::{named, shape};
use super::prelude::*;
use pando_query::plan::explain::query_hash;
use pando_query::plan::{IndexFilter, query_shape};

pub(super) async fn set(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Some(coll) = server.access.collection(ctx, &req.ns_of_ddl()?)? else {
        return Err(Error::bad_value("no such collection"));
    };
    let query = named(server, ctx, &req, &coll)?;
    let (mut patterns, names) = indexes(&req)?;
    patterns.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    let filter = IndexFilter {
        query: query.matcher.filter().to_buf(),
        sort: query.sort.as_ref().map_or_else(DocBuf::new, |s| s.spec.clone()),
        projection: query.projection.as_ref().map_or_else(DocBuf::new, |p| p.spec().to_buf()),
        collation: query.ctx.collation.as_ref().map(|c| c.spec().to_buf()),
        patterns,
        names,
    };
    coll.info.index_filters.set(query_shape(&query), filter);
    coll.info.plan_cache.forget_shape(&query_hash(&query));
    Ok(Reply::new())
}

/// Key patterns and names.
fn indexes(req: &Request<'_>) -> Result<(Vec<DocBuf>, Vec<String>)> {
    let list = match req.body.get("indexes") {
        None => return Err(Error::bad_value("required field indexes missing")),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Error::bad_value("required field indexes must be an array")),
    };
    if list.is_empty() {
        return Err(Error::bad_value("required field indexes must contain at least one index"));
    }
    let (mut patterns, mut names) = (Vec::new(), Vec::new());
    for e in list {
        match e.value() {
            Value::String(name) => names.push(name.to_owned()),
            Value::Document(d) if d.is_empty() => {
                return Err(Error::bad_value("index specification cannot be empty"));
            }
            Value::Document(d) => patterns.push(d.to_buf()),
            _ => return Err(Error::bad_value("each item in indexes must be an object or string")),
        }
    }
    Ok((patterns, names))
}

pub(super) async fn clear(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if let Some(coll) = server.access.collection(ctx, &req.ns_of_ddl()?)? {
        match shape(server, ctx, &req, &coll)? {
            Some(query) => {
                coll.info.index_filters.remove(&query_shape(&query));
                coll.info.plan_cache.forget_shape(&query_hash(&query));
            }
            None => {
                coll.info.index_filters.clear();
                coll.info.plan_cache.clear();
            }
        }
    }
    Ok(Reply::new())
}

pub(super) async fn list(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let coll = server.access.collection(ctx, &req.ns_of_ddl()?)?;
    let filters = coll.map(|c| c.info.index_filters.all()).unwrap_or_default();
    let mut r = Reply::new();
    r.body.array("filters", |a| {
        for f in filters {
            a.doc(|d| {
                d.raw_doc("query", &f.query).raw_doc("sort", &f.sort).raw_doc("projection", &f.projection);
                if let Some(c) = &f.collation {
                    d.raw_doc("collation", c);
                }
                d.array("indexes", |a| {
                    for pattern in &f.patterns {
                        a.raw_doc(pattern);
                    }
                    for name in &f.names {
                        a.str(name);
                    }
                });
            });
        }
    });
    Ok(r)
}
