//! `shutdown`: ends the process cleanly. The connection closes instead of an answer.
//!
//! A primary steps down first; if nobody can take over in time it stays (262) unless `force` is given.

use super::prelude::*;
use pando_base::limits;
use std::time::Duration;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let (mut force, mut secs) = (false, limits::SHUTDOWN_COMMAND_SECS);
    for arg in req.args("shutdown") {
        match arg.name() {
            "force" => force = arg.boolish()?,
            "timeoutSecs" => secs = arg.i64_at_least(0)?,
            _ => return Err(arg.unknown()),
        }
    }
    let env = ctx.env();
    env.log.info(pando_env::Component::Command, 4695400, "Attempting to shutdown", |a| {
        a.bool("force", force).i64("timeoutSecs", secs);
    });
    let deadline = env.clock.mono().saturating_add(Duration::from_secs(secs as u64));
    server.replication.hand_over(secs.saturating_mul(1000), force).await?;
    server.lifecycle.request_shutdown(Some(deadline));
    // Interrupted when everybody is, at the latest.
    let _ = ctx.interruptible(server.lifecycle.wait_stopping()).await;
    ctx.close_connection();
    Ok(Reply::new())
}
