//! `insert`: each document to the shard that its key belongs to.

use super::prelude::*;
use crate::write::execute::{Writes, numbers};
use crate::write::reply::{Told, reply};
use crate::write::targeting::{Goes, of_document};
use crate::write::without_key::new_id;
use pando_request::InsertArgs;
use std::borrow::Cow;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = InsertArgs::parse(&req, |_| Ok(()))?;
    ctx.arguments_read()?;
    router.instance.metrics.op_counters.insert.add(args.documents.len() as u64);
    let writes = Writes {
        command: "insert",
        field: "documents",
        numbers: numbers(req.body, args.documents.len()),
        docs: args.documents.iter().map(|doc| with_id(ctx, doc)).collect(),
        args: &args.write,
        ns: args.ns.clone(),
    };
    let batch =
        writes.run(router, ctx, &req, |route, i| of_document(route, &writes.docs[i]).map(Goes::To)).await?;
    Ok(reply(batch.outcome, Told::Insert))
}

/// A document gets its `_id` here: where it goes may depend on it, and it must be the same on every try.
fn with_id<'a>(ctx: &OpCtx, doc: &'a RawDoc) -> Cow<'a, RawDoc> {
    if doc.elem("_id").is_some() {
        return Cow::Borrowed(doc);
    }
    let mut b = DocBuilder::with_capacity(doc.byte_len() + 20);
    b.object_id("_id", new_id(ctx)).elems_of(doc);
    Cow::Owned(b.finish())
}
