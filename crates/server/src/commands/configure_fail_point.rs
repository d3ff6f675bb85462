//! `configureFailPoint` (test command): makes a named place misbehave on purpose.

use super::prelude::*;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    // What is no string names nothing, and is not found.
    let name = req.first().value().as_str().unwrap_or_default();
    let count = server.instance.fail_points.configure(name, req.body)?;
    let mut r = Reply::new();
    crate::statistics::sizes::int(&mut r.body, "count", count.max(0) as u64);
    Ok(r)
}
