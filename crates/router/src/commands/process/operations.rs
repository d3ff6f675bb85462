//! `currentOp`, `killOp`, `shutdown`, `configureFailPoint`: what runs here, and its end.

use super::super::prelude::*;
use pando_command::ActiveOp;
use pando_request::KillOpArgs;

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

fn append(d: &mut DocBuilder, router: &Router, op: &ActiveOp, desc: &str, remote: Option<&str>) {
    d.str("host", &router.config.host_port()).str("desc", desc);
    if let Some(remote) = remote {
        d.str("client", remote);
    }
    d.bool("active", true).i64("opid", i64::from(op.op_id)).str("op", "command").str("ns", &op.ns);
    let took = router.instance.env.clock.mono().saturating_sub(op.started);
    d.i64("secs_running", took.as_secs() as i64).i64("microsecs_running", took.as_micros() as i64);
    if let Ok(body) = RawDoc::validate(&op.body) {
        d.raw_doc("command", body);
    }
}

pub(in crate::commands) async fn current(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    let clients = router.instance.clients.all();
    r.body.array("inprog", |a| {
        for client in &clients {
            if let Some(op) = client.active_op() {
                a.doc(|d| append(d, router, &op, &client.desc, client.remote.as_deref()));
            }
        }
    });
    Ok(r)
}

pub(in crate::commands) async fn shutdown(router: &Router, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
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
