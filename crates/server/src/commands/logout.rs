//! `logout` and `getnonce`: the ends of an authentication that needs nothing kept. Nobody can be logged in yet, so
//! there is nobody to log out.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    match req.args("logout").next() {
        Some(arg) => Err(arg.unknown()),
        None => Ok(Reply::new()),
    }
}

/// A relic of the first password protocol; old clients still ask before they look at the version.
pub(super) async fn nonce(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.str("nonce", &format!("{:016x}", server.instance.env.rng.next_u64()));
    Ok(r)
}
