//! `lockInfo`: locks held for long. Readers hold none and writers only for moments, so there are none to show.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.array("lockInfo", |_| {});
    Ok(r)
}
