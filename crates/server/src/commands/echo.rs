//! `echo` (test command): gives the request back.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut r = Reply::with_capacity(req.body.byte_len() + 64);
    r.body.raw_doc("echo", req.body);
    Ok(r)
}
