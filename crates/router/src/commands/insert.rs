//! `insert`: each document to the shard that its key belongs to.

use super::prelude::*;
use crate::write::execute::{Writes, numbers};
use crate::write::new_id::for_insert;
use crate::write::reply::{Told, reply};
use crate::write::targeting::{Goes, of_document};
use pando_request::InsertArgs;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = InsertArgs::parse(&req, |_| Ok(()))?;
    ctx.arguments_read()?;
    router.instance.metrics.op_counters.insert.add(args.documents.len() as u64);
    let writes = Writes {
        command: "insert",
        field: "documents",
        numbers: numbers(req.body, args.documents.len()),
        docs: args.documents.iter().map(|doc| for_insert(router, ctx, doc)).collect(),
        args: &args.write,
        ns: args.ns.clone(),
    };
    let batch =
        writes.run(router, ctx, &req, |route, i| of_document(route, &writes.docs[i]).map(Goes::To)).await?;
    Ok(reply(batch.outcome, Told::Insert))
}
