//! `waitForFailPoint` (test command): resolves once a fail point was hit often enough.

use super::prelude::*;
use pando_command::request::missing;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let name = req.first_str("waitForFailPoint")?;
    let mut times = None;
    for arg in req.args("waitForFailPoint") {
        match arg.name() {
            "timesEntered" if arg.is_absent() => {}
            "timesEntered" => times = Some(arg.i64()?),
            // A real server passes over what it does not know here.
            _ => {}
        }
    }
    let times = times.ok_or_else(|| missing("waitForFailPoint", "timesEntered"))?;
    let point = server.instance.fail_points.find(name)?.clone();
    ctx.interruptible(point.wait_entered(times)).await?;
    Ok(Reply::new())
}
