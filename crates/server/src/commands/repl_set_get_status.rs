//! `replSetGetStatus`: this member's view of the set (R-STATE-4).

use super::prelude::*;

pub(super) async fn run(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.repl.require_config()?;
    let mut r = Reply::with_capacity(2048);
    let uptime = ctx.env().clock.mono().saturating_sub(server.instance.started).as_secs();
    let now = ctx.env().clock.wall_ms();
    server.repl.append_status(&mut r.body, server.positions(), now, uptime as i64);
    Ok(r)
}
