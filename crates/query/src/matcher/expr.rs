//! `$expr`: an aggregation expression as a condition.

use super::node::ExprTest;
use crate::ctx::QueryCtx;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::Value;
use std::sync::Arc;

pub(super) fn compile(_expression: Value<'_>, _ctx: &QueryCtx) -> Result<Arc<dyn ExprTest>> {
    Err(Error::new(ErrorCode::NotImplemented, "$expr is not supported by this server"))
}
