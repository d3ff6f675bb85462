//! `configureFailPoint` (test command): makes a named place misbehave on purpose.

use super::prelude::*;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Value::String(name) = req.first().value() else {
        return Err(Error::type_mismatch("the fail point's name must be a string"));
    };
    let count = server.instance.fail_points.configure(name, req.body)?;
    let mut r = Reply::new();
    r.body.i64("count", count);
    Ok(r)
}
