//! `whatsmysni`: the TLS server name the client asked for (none without TLS).

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.bool("sni", false);
    Ok(r)
}
