//! `listIndexes`: the indexes of a collection.

use super::prelude::*;
use crate::cursor_reply::cursor_option;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = server.ns_or_uuid(&req)?;
    let (mut batch_size, mut build_uuids) = (None, false);
    for arg in req.args("listIndexes") {
        if matches!(arg.value(), Value::Null) {
            continue;
        }
        match arg.name() {
            "cursor" => batch_size = cursor_option("listIndexes", arg.elem())?,
            "includeBuildUUIDs" | "includeIndexBuildInfo" => build_uuids |= arg.bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    let coll = server
        .existing_collection(&ns)?
        .ok_or_else(|| Error::new(ErrorCode::NamespaceNotFound, format!("ns does not exist: {ns}")))?;
    let _ = build_uuids;
    let docs = coll.index_docs(true).iter().map(|d| listed(d)).collect();
    server.list_cursor(ctx, &req, ns, batch_size, docs).await
}

/// Fields in the order in which MongoDB lists them, whatever the order they were given in.
const LISTED: &[&str] = &[
    "v",
    "key",
    "name",
    "background",
    "unique",
    "hidden",
    "partialFilterExpression",
    "sparse",
    "expireAfterSeconds",
    "storageEngine",
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "bits",
    "min",
    "max",
    "collation",
    "wildcardProjection",
];

fn listed(spec: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::with_capacity(spec.byte_len());
    for e in LISTED.iter().filter_map(|name| spec.elem(name)) {
        b.elem(e);
    }
    for e in spec.iter().filter(|e| !LISTED.contains(&e.name())) {
        b.elem(e);
    }
    b.finish()
}
