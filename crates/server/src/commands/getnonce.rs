//! `getnonce`: a relic of the first password protocol; old clients still ask before they look at the version.

use super::prelude::*;

pub(super) async fn run(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.str("nonce", &format!("{:016x}", server.instance.env.rng.next_u64()));
    Ok(r)
}
