//! `createSearchIndexes`, `updateSearchIndex`, `dropSearchIndex`, `listSearchIndexes`: search indexes exist on Atlas
//! only, and drivers tell it from this answer.

use crate::{Node, OpCtx, Reply, Request};
use pando_base::{Error, ErrorCode, Result};

pub async fn run<S: Node>(_: &S, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    Err(Error::new(ErrorCode::CommandNotSupported, "Search index commands are only supported with Atlas."))
}
