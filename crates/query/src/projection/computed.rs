//! Fields whose value is an aggregation expression or a literal.

use crate::ctx::QueryCtx;
use crate::expr::Expr;
use pando_base::Result;
use pando_bson::{DocBuilder, RawDoc, Value};
use std::fmt;

/// A value computed from the whole document.
pub struct Computed {
    expr: Expr,
    ctx: QueryCtx,
}

impl Computed {
    pub(super) fn parse(v: Value<'_>, ctx: &QueryCtx) -> Result<Computed> {
        Ok(Computed { expr: Expr::parse(v, ctx)?, ctx: ctx.clone() })
    }
    /// Adds the value under `name`; a missing one (or `$$REMOVE`) leaves the field out.
    pub(super) fn write(&self, root: &RawDoc, name: &str, out: &mut DocBuilder) -> Result<()> {
        self.expr.eval_doc(root, &self.ctx)?.put_to(out, name);
        Ok(())
    }
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}
