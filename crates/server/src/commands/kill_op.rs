//! `killOp`: asks a running operation to stop at its next check.

use super::prelude::*;
use pando_request::KillOpArgs;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let id = KillOpArgs::parse(&req)?.op_id()?;
    // Also when there is no such operation: it may have ended a moment ago.
    server.instance.clients.kill_op(id);
    let mut r = Reply::new();
    r.body.str("info", "attempting to kill op");
    Ok(r)
}
