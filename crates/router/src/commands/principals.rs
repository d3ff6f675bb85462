//! Users and roles are the config servers': they carry out what changes them, and what this router knew is read again.

use super::of_config;
use super::prelude::*;

pub(super) async fn change(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    // By a majority, or whoever logs in elsewhere after a failover would not be there.
    let done = of_config::write_by_majority(router, ctx, req).await;
    // One that failed may have been carried out.
    router.principals.invalidate();
    done
}

pub(super) async fn invalidate(router: &Router, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("invalidateUserCache", &[])?;
    router.principals.invalidate();
    Ok(Reply::new())
}
