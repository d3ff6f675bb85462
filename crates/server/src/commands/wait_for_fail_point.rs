//! `waitForFailPoint` (test command): resolves once a fail point was hit often enough.

use super::prelude::*;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Value::String(name) = req.first().value() else {
        return Err(Error::type_mismatch("the fail point's name must be a string"));
    };
    let mut times = 1;
    for arg in req.args("waitForFailPoint") {
        match arg.name() {
            "timesEntered" => times = arg.i64()?,
            _ => return Err(arg.unknown()),
        }
    }
    let point = server.instance.fail_points.find(name)?.clone();
    ctx.interruptible(point.wait_entered(times)).await?;
    Ok(Reply::new())
}
