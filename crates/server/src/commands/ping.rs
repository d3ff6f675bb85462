//! `ping`: the server is there.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    match req.args("ping").next() {
        Some(arg) => Err(arg.unknown()),
        None => Ok(Reply::new()),
    }
}
