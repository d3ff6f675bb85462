//! `shutdown`: ends the process cleanly.

use super::prelude::*;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    for arg in req.args("shutdown") {
        match arg.name() {
            "force" => drop(arg.boolish()?),
            "timeoutSecs" => drop(arg.i64_at_least(0)?),
            _ => return Err(arg.unknown()),
        }
    }
    ctx.env().log.info(pando_env::Component::Command, 4695400, "Attempting to shutdown", |_| {});
    server.request_shutdown();
    Ok(Reply::new())
}
