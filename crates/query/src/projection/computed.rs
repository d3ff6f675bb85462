//! Fields whose value is an aggregation expression or a literal.

use crate::ctx::QueryCtx;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{Bson, RawDoc, Value};
use std::fmt::Debug;
use std::sync::Arc;

/// A value computed from the whole document.
pub trait Computed: Send + Sync + Debug {
    /// `None` leaves the field out (a missing value or `$$REMOVE`).
    fn eval(&self, root: &RawDoc) -> Result<Option<Bson>>;
}

/// A constant.
#[derive(Debug)]
struct Literal(Bson);

impl Computed for Literal {
    fn eval(&self, _root: &RawDoc) -> Result<Option<Bson>> {
        Ok(Some(self.0.clone()))
    }
}

pub(super) fn compile(v: Value<'_>, _ctx: &QueryCtx) -> Result<Arc<dyn Computed>> {
    match v {
        Value::Document(_) | Value::Array(_) => {}
        Value::String(s) if s.starts_with('$') => {}
        literal => return Ok(Arc::new(Literal(literal.into()))),
    }
    Err(Error::new(ErrorCode::NotImplemented, "expressions in projections are not supported by this server"))
}
