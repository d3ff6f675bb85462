//! `replSetHeartbeat`: another member asks how this one is doing, and tells the same (R-HB-1..3).

use super::prelude::*;
use pando_repl::Said;
use pando_repl::coordinator::wire;
use pando_repl::topology::Event;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let request = wire::parse_heartbeat(req.body)?;
    server.replication.admit_member(ctx, "replSetHeartbeat", Some(request.from_host.as_str())).await?;
    let coordinator = server.replication.coordinator()?;
    let said = ctx.interruptible(coordinator.ask(|token| Event::Heartbeat { token, request })).await?;
    match said {
        Said::Heartbeat(reply) => {
            let mut r = Reply::with_capacity(600);
            wire::append_heartbeat_reply(&mut r.body, &reply?);
            Ok(r)
        }
        other => other.waited().map(|()| Reply::new()),
    }
}
