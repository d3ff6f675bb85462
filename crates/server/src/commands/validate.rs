//! `validate`: are a collection and its indexes what they claim to be?

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    Err(Error::new(ErrorCode::NotImplemented, "validate is not built in yet"))
}
