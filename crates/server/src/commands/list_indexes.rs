//! `listIndexes`: the indexes of a collection.

use super::prelude::*;
use pando_access::Collection;
use pando_query::timeseries::index_of_users;
use pando_request::ListIndexesArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = ListIndexesArgs::parse_for(&req, ctx.api.strict)?;
    if !matches!(req.first().value(), Value::Binary { .. }) {
        req.ns()?;
    }
    let shape = match (args.build_uuids, args.build_info) {
        (Some(true), Some(true)) => {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "The includeBuildUUIDs flag and includeBuildIndexInfo flag cannot both be set to true",
            ));
        }
        (Some(true), _) => Shape::WithUuids,
        (_, Some(true)) => Shape::WithInfo,
        _ => Shape::Plain,
    };
    ctx.arguments_read()?;
    let ns = server.access.ns_or_uuid(&req)?;
    let by_buckets = args.by_buckets == Some(true);
    let series = server.access.series_of_definition(&ns, by_buckets)?;
    let coll = server
        .access
        .collection(ctx, series.as_ref().map_or(&ns, |s| &s.buckets))?
        .ok_or_else(|| Error::new(ErrorCode::NamespaceNotFound, format!("ns does not exist: {ns}")))?;
    let mut docs = list(&coll, shape);
    if let Some(series) = &series {
        docs = docs.iter().filter_map(|d| index_of_users(&series.of, d)).collect();
    }
    // Also who names the buckets is told of the time series.
    let named = ns.coll().strip_prefix("system.buckets.").filter(|_| by_buckets && series.is_some());
    let ns = named.map_or_else(|| ns.clone(), |name| Namespace::unchecked(ns.db(), name));
    let batch_size = args.cursor.and_then(|c| c.batch_size);
    server.crud.cursors.list(ctx, &req, ns, batch_size, docs).await
}

/// How an index that is being built is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// As a ready one.
    Plain,
    /// `{spec, buildUUID}` in place of the specification.
    WithUuids,
    /// `{spec, indexBuildInfo}`, and `{spec}` for ready ones.
    WithInfo,
}

fn list(coll: &Collection, shape: Shape) -> Vec<DocBuf> {
    let docs = coll.index_docs(true);
    // The clustered index comes first and is nobody's build.
    let clustered = usize::from(coll.is_clustered() && coll.options.time_series.is_none());
    let shown = |(i, doc): (usize, DocBuf)| {
        let index = i.checked_sub(clustered).and_then(|i| coll.indexes.get(i));
        let build = index.and_then(|i| i.building.as_ref());
        let mut b = DocBuilder::new();
        match (shape, build) {
            (Shape::WithUuids, Some(build)) => {
                b.raw_doc("spec", &doc);
                b.uuid("buildUUID", &build.uuid.0);
            }
            (Shape::WithInfo, build) => {
                b.raw_doc("spec", &doc);
                if let Some(build) = build {
                    b.doc("indexBuildInfo", |d| {
                        d.uuid("buildUUID", &build.uuid.0);
                    });
                }
            }
            _ => return doc,
        }
        b.finish()
    };
    docs.into_iter().enumerate().map(shown).collect()
}
