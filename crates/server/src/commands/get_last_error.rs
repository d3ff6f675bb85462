//! `getLastError`: gone since 5.1; old clients are told so.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    Err(Error::location(5_739_000, "getLastError command is not supported"))
}
