//! `waitForFailPoint` (test command): resolves once a fail point was hit often enough.

use crate::request::missing;
use crate::{Node, OpCtx, Reply, Request};
use pando_base::Result;

pub async fn run<S: Node>(node: &S, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
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
    let point = node.instance().fail_points.find(name)?.clone();
    ctx.interruptible(point.wait_entered(times)).await?;
    Ok(Reply::new())
}
