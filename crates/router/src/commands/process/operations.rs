//! `currentOp`, `killOp`, `shutdown`, `configureFailPoint`: what runs here, and its end.

use super::super::prelude::*;
use crate::aggregate::own::only_own;
use crate::aggregate::run::{Asked, open};
use crate::cursors::Wanted;
use pando_bson::ArrayBuilder;
use pando_request::{AggregateArgs, KillOpArgs};
use pando_session::operations;

pub(in crate::commands) async fn kill(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    // `shard:number` is one of a shard's.
    let text = req.body.get("op").as_ref().and_then(|v| v.as_str()).map(str::to_owned);
    if let Some((shard, op)) = text.as_deref().and_then(|t| t.rsplit_once(':')) {
        let op: i64 = op.parse().map_err(|_| {
            Error::bad_value(format!(
                "The op argument to killOp must be of the format shardid:opid but found \"{shard}:{op}\""
            ))
        })?;
        let mut b = DocBuilder::new();
        b.i32("killOp", 1).i64("op", op).str("$db", "admin");
        let shard_id = pando_routing::ShardId::new(shard);
        router.call_primary(ctx, &shard_id, &b.finish(), pando_rpc::Retry::Idempotent).await?;
        let mut r = Reply::new();
        r.body.str("shard", shard).i64("shardid", op);
        return Ok(r);
    }
    let id = KillOpArgs::parse(&req)?.op_id()?;
    router.instance.clients.kill_op(id);
    let mut r = Reply::new();
    r.body.str("info", "attempting to kill op");
    Ok(r)
}

impl Router {
    /// What runs here, and what clients wait for a router to do where that is asked for.
    pub(crate) fn running_operations(&self, ctx: &OpCtx, spec: &RawDoc) -> Vec<DocBuf> {
        let is_on = |name: &str| spec.get(name).is_some_and(|v| v.is_truthy());
        let idle = is_on("idleConnections");
        let own = ctx.owner().filter(|_| !is_on("allUsers"));
        let (clock, host) = (&self.instance.env.clock, self.config.host_port());
        let (now, wall) = (clock.mono(), clock.wall_ms());
        let clients = self.instance.clients.all();
        let rows = clients.iter().filter_map(|client| {
            let op = client.active_op();
            let is_own = own.is_none_or(|own| client.login().owner() == own);
            let shown = is_own && (op.is_some() || idle);
            shown.then(|| operations::row(&host, client, op.as_ref(), now, wall, |_, _| {}))
        });
        rows.collect()
    }
}

/// Those of all shards, by the stage of that name; with `$ownOps` and its like as its options.
pub(in crate::commands) async fn current(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut options = DocBuilder::new();
    options.bool("allUsers", !req.body.get("$ownOps").is_some_and(|v| v.is_truthy()));
    options.bool("idleConnections", req.body.get("$all").is_some_and(|v| v.is_truthy()));
    let mut stages = ArrayBuilder::new();
    stages.doc(|d| _ = d.raw_doc("$currentOp", &options.finish()));
    let mut filter = DocBuilder::new();
    let own = |name: &str| matches!(name, "$ownOps" | "$all" | "$truncateOps" | "$recent");
    for e in req.body.iter().skip(1) {
        if !own(e.name()) && !pando_command::generic_args::is_generic(e.name_bytes()) {
            filter.elem(e);
        }
    }
    stages.doc(|d| _ = d.raw_doc("$match", &filter.finish()));
    let stages = stages.finish();
    let stages = only_own(router, ctx, &stages)?.unwrap_or(stages);
    let ns = Namespace::unchecked("admin", "$cmd.aggregate");
    let args = AggregateArgs { pipeline: &stages, has_cursor: true, ..AggregateArgs::default() };
    let asked = Asked { named: ns.clone(), ns, args, explains: None };
    let mut r = Reply::new();
    let Some(mut cursor) = open(router, ctx, &req, &asked).await? else { return Ok(r) };
    let docs = cursor.fill(router, ctx, Wanted { docs_max: u64::MAX, ..Wanted::default() }).await?;
    r.body.array("inprog", |a| docs.iter().for_each(|doc| _ = a.raw_doc(doc)));
    Ok(r)
}

pub(in crate::commands) async fn shutdown(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    // Nobody has to take over from a router.
    for arg in req.args("shutdown") {
        match arg.name() {
            "force" => drop(arg.boolish()?),
            "timeoutSecs" => drop(arg.i64_at_least(0)?),
            _ => return Err(arg.unknown()),
        }
    }
    router.request_shutdown();
    ctx.close_connection();
    Ok(Reply::new())
}

pub(in crate::commands) async fn fail_point(router: &Router, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let name = req.first().value();
    let count = router.instance.fail_points.configure(name.as_str().unwrap_or_default(), req.body)?;
    let mut r = Reply::new();
    r.body.i32_or_i64("count", count.max(0));
    Ok(r)
}
