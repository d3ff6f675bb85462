//! Commands whose effect is to do nothing: caches that this server does not have, or keeps fresh by itself.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    Ok(Reply::new())
}
