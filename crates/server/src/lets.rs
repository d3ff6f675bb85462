//! `let`: variables of a command, evaluated once before it runs.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::RawDoc;
use pando_query::QueryCtx;

/// Evaluates the expressions of `lets` in order; later ones may use earlier ones.
pub(crate) fn evaluate(_lets: &RawDoc, _q: QueryCtx) -> Result<QueryCtx> {
    Err(Error::new(ErrorCode::NotImplemented, "let is not built in yet"))
}
