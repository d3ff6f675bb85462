//! `listIndexes`: the indexes of a collection.

use super::prelude::*;
use pando_catalog::Collection;
use pando_command::request::unstable_field;
use pando_query::timeseries::index_of_users;
use pando_request::fields::cursor_option;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = server.ns_or_uuid(&req)?;
    let (mut batch_size, mut build_uuids, mut build_info) = (None, false, false);
    for arg in req.args("listIndexes") {
        match arg.name() {
            "cursor" | "includeBuildUUIDs" | "includeIndexBuildInfo" if arg.is_absent() => {}
            "cursor" => batch_size = cursor_option("listIndexes", arg.elem())?,
            "includeBuildUUIDs" | "includeIndexBuildInfo" if ctx.api.strict => {
                return Err(unstable_field("listIndexes", arg.name()));
            }
            "includeBuildUUIDs" => build_uuids = arg.boolish()?,
            "includeIndexBuildInfo" => build_info = arg.boolish()?,
            _ => return Err(arg.unknown()),
        }
    }
    let series = server.time_series(&ns);
    let coll = server
        .existing_collection(series.as_ref().map_or(&ns, |s| &s.buckets))?
        .ok_or_else(|| Error::new(ErrorCode::NamespaceNotFound, format!("ns does not exist: {ns}")))?;
    let shape = match (build_uuids, build_info) {
        (true, true) => {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "The includeBuildUUIDs flag and includeBuildIndexInfo flag cannot both be set to true",
            ));
        }
        (true, false) => Shape::WithUuids,
        (false, true) => Shape::WithInfo,
        (false, false) => Shape::Plain,
    };
    let mut docs = list(&coll, shape);
    if let Some(series) = &series {
        docs = docs.iter().filter_map(|d| index_of_users(&series.of, d)).collect();
    }
    server.list_cursor(ctx, &req, ns, batch_size, docs).await
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
