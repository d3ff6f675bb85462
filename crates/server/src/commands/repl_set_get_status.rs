//! `replSetGetStatus`: this member's view of the set (R-STATE-4).

use super::prelude::*;
use pando_repl::show::{StatusAt, append_status};

pub(super) async fn run(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.repl.require_config()?;
    let mut r = Reply::with_capacity(2048);
    let uptime = ctx.env().clock.mono().saturating_sub(server.instance.started).as_secs();
    let at = StatusAt {
        catch_up_ops: server.catch_ups.last(),
        positions: server.positions(),
        stable: server.storage.stable(),
        now_ms: ctx.env().clock.wall_ms(),
        uptime_secs: uptime as i64,
    };
    match server.coordinator.get() {
        Some(c) => c.read(|core| append_status(&mut r.body, core, &at)),
        None => server.repl.append_followers_status(&mut r.body, &at),
    }
    Ok(r)
}
