//! `explain`.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    Err(Error::new(ErrorCode::NotImplemented, "explain is not built in yet"))
}
