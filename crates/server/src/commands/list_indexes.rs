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
    let docs = coll.index_docs(true);
    server.list_cursor(ctx, &req, ns, batch_size, docs).await
}
