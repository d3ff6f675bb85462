//! `$expr`: an aggregation expression as a condition.

use super::node::ExprTest;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, ParseCtx, optimize_error};
use pando_base::Result;
use pando_bson::{RawDoc, Value};
use std::sync::Arc;

struct Condition {
    expr: Expr,
    ctx: QueryCtx,
}

impl ExprTest for Condition {
    fn holds(&self, doc: &RawDoc) -> Result<bool> {
        Ok(self.expr.eval_doc(doc, &self.ctx)?.is_truthy())
    }
}

pub(super) fn compile(expression: Value<'_>, ctx: &QueryCtx) -> Result<Arc<dyn ExprTest>> {
    let mut expr = ParseCtx::new(ctx).parse(expression)?;
    expr.optimize(ctx).map_err(|e| optimize_error("expression", e))?;
    Ok(Arc::new(Condition { expr, ctx: ctx.clone() }))
}
