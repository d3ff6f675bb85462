//! `whatsmyuri`: the client's address as the server sees it.

use super::prelude::*;

pub(super) async fn run(_: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.str("you", ctx.client.remote.as_deref().unwrap_or(""));
    Ok(r)
}
