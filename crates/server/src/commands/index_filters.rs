//! `planCacheSetFilter`, `planCacheListFilters`, `planCacheClearFilters`: which indexes queries of a shape may use.

use super::plan_cache::of_one;
use super::prelude::*;
use pando_query::plan::explain::query_hash;
use pando_query::plan::{IndexFilter, query_shape};
use pando_request::{PlanCacheClearFiltersArgs, PlanCacheListFiltersArgs, PlanCacheSetFilterArgs};

pub(super) async fn set(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = PlanCacheSetFilterArgs::parse(&req)?;
    let Some(coll) = server.access.collection(ctx, &req.ns_of_ddl()?)? else {
        return Err(Error::bad_value("no such collection"));
    };
    let (patterns, names) = args.indexes()?;
    let query = server.crud.reads.parse_find(ctx, &coll.ns, Some(&coll), &args.shape().named()?)?;
    let mut patterns: Vec<DocBuf> = patterns.into_iter().map(RawDoc::to_buf).collect();
    patterns.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    let filter = IndexFilter {
        query: query.matcher.filter().to_buf(),
        sort: query.sort.as_ref().map_or_else(DocBuf::new, |s| s.spec.clone()),
        projection: query.projection.as_ref().map_or_else(DocBuf::new, |p| p.spec().to_buf()),
        collation: query.ctx.collation.as_ref().map(|c| c.spec().to_buf()),
        patterns,
        names: names.into_iter().map(str::to_owned).collect(),
    };
    coll.info.index_filters.set(query_shape(&query), filter);
    coll.info.plan_cache.forget_shape(&query_hash(&query));
    Ok(Reply::new())
}

pub(super) async fn clear(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = PlanCacheClearFiltersArgs::parse(&req)?;
    if let Some(coll) = server.access.collection(ctx, &req.ns_of_ddl()?)? {
        match of_one(server, ctx, args.shape(), &coll)? {
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
    PlanCacheListFiltersArgs::parse(&req)?;
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
