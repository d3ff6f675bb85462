//! `delete`: each statement to the shards that have what it may delete.

use super::prelude::*;
use crate::write::execute::{Writes, numbers};
use crate::write::reply::{Told, reply};
use crate::write::targeting::of_delete;
use pando_request::DeleteArgs;
use std::borrow::Cow;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = DeleteArgs::parse(&req, |_| Ok(()))?;
    ctx.arguments_read()?;
    router.instance.metrics.op_counters.delete.add(args.deletes.len() as u64);
    let writes = Writes {
        command: "delete",
        field: "deletes",
        numbers: numbers(req.body, args.deletes.len()),
        docs: req.required_docs("delete", "deletes")?.map(Cow::Borrowed).collect(),
        args: &args.write,
        ns: args.ns.clone(),
    };
    let goes =
        |route: &pando_metadata_cache::Route, i: usize| of_delete(router, ctx, route, &args.deletes[i]);
    let batch = writes.run(router, ctx, &req, goes).await?;
    Ok(reply(batch.outcome, Told::Delete))
}
