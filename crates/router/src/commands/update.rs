//! `update`: each statement to the shards that have what it may change.

use super::prelude::*;
use crate::write::execute::{Writes, numbers};
use crate::write::reply::{Told, reply};
use crate::write::targeting::of_update;
use pando_request::UpdateArgs;
use std::borrow::Cow;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = UpdateArgs::parse(&req, |_| Ok(()))?;
    ctx.arguments_read()?;
    router.instance.metrics.op_counters.update.add(args.updates.len() as u64);
    let writes = Writes {
        command: "update",
        field: "updates",
        numbers: numbers(req.body, args.updates.len()),
        docs: req.required_docs("update", "updates")?.map(Cow::Borrowed).collect(),
        args: &args.write,
        ns: args.ns.clone(),
    };
    let goes =
        |route: &pando_metadata_cache::Route, i: usize| of_update(router, ctx, route, &args.updates[i]);
    let batch = writes.run(router, ctx, &req, goes).await?;
    Ok(reply(batch.outcome, Told::Update))
}
