//! `createSearchIndexes`, `updateSearchIndex`, `dropSearchIndex`, `listSearchIndexes`: search indexes exist on Atlas
//! only, and drivers tell it from this answer.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    Err(Error::new(ErrorCode::CommandNotSupported, "Search index commands are only supported with Atlas."))
}
