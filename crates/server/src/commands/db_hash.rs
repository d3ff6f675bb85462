//! `dbHash`: digests of all collections of a database.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    Err(Error::new(ErrorCode::NotImplemented, "dbHash is not built in yet"))
}
