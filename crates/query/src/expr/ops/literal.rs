//! `$literal` and its old name `$const`.

use crate::expr::{Expr, ParseCtx};
use pando_base::Result;
use pando_bson::Value;

pub(in crate::expr) fn parse_literal(_: &'static str, v: Value<'_>, _: &mut ParseCtx<'_>) -> Result<Expr> {
    Ok(Expr::constant(v))
}
