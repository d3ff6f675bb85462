//! `findAndModify`: one document of one shard, which its query has to name.

use super::prelude::*;
use crate::remote::stale::Tries;
use crate::write::targeting::of_point;
use pando_metadata_cache::{Route, Target};
use pando_monitor::ReadPreference;
use pando_request::FindAndModifyArgs;
use pando_rpc::Retry;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    let args = FindAndModifyArgs::parse(&req)?;
    args.check()?;
    ctx.arguments_read()?;
    let mut tries = Tries::default();
    loop {
        let route = router.route_for_write(ctx, &ns).await?;
        let target = target(router, ctx, &route, &args)?;
        match send(router, ctx, &req, &target).await {
            Err(e) if tries.again(router, ctx, &route, &e).await => {}
            done => return done,
        }
    }
}

fn target(router: &Router, ctx: &OpCtx, route: &Route, args: &FindAndModifyArgs<'_>) -> Result<Target> {
    let Some(table) = &route.table else { return Ok(route.primary()) };
    let matcher = router.condition(ctx, Some(table), args.query, args.collation, args.let_vars);
    if let Some(target) = of_point(table, matcher.as_ref())? {
        return Ok(target);
    }
    // Whatever matches is on one shard, and an upsert belongs where its key is.
    let mut targets = route.concerned(matcher.as_ref());
    match targets.pop() {
        Some(target) if targets.is_empty() && !args.upsert => Ok(target),
        _ => Err(Error::new(
            ErrorCode::ShardKeyNotFound,
            "Query for sharded findAndModify must contain the shard key",
        )),
    }
}

async fn send(router: &Router, ctx: &OpCtx, req: &Request<'_>, target: &Target) -> Result<Reply> {
    let mut b = DocBuilder::with_capacity(req.body.byte_len() + 256);
    envelope::renamed(&mut b, req, "findAndModify");
    for name in ["stmtId", "stmtIds"] {
        req.body.elem(name).into_iter().for_each(|e| _ = b.elem(e));
    }
    envelope::append(&mut b, ctx, req, Kind::Write, target);
    let retry = match ctx.txn_number {
        _ if ctx.in_txn() => Retry::Never,
        Some(_) => Retry::Idempotent,
        None => Retry::NotIdempotent,
    };
    let answer = router.call(ctx, &target.shard, &ReadPreference::default(), &b.finish(), &[], retry).await?;
    Ok(handed_on(&answer.reply))
}
