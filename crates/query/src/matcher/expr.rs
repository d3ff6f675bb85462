//! `$expr`: an aggregation expression as a condition.

use super::expr_bounds::implied;
use super::node::{ExprTest, Node};
use super::parse::In;
use super::place::Place;
use crate::ctx::QueryCtx;
use crate::expr::spelled::spelled;
use crate::expr::{Expr, ParseCtx, optimize_error};
use pando_base::Result;
use pando_bson::{DocBuf, RawDoc, Value};
use std::sync::Arc;

struct Condition {
    expr: Expr,
    ctx: QueryCtx,
}

impl ExprTest for Condition {
    fn holds(&self, doc: &RawDoc) -> Result<bool> {
        Ok(self.expr.eval_doc(doc, &self.ctx)?.is_truthy())
    }
    fn runs_scripts(&self) -> bool {
        self.expr.runs_scripts()
    }
    fn dependencies(&self, paths: &mut std::collections::BTreeSet<String>) {
        self.expr.dependencies(paths);
    }
    fn spelled(&self, source: &RawDoc) -> Option<DocBuf> {
        source.first().map(|e| spelled(e.value(), &self.ctx))
    }
}

/// The condition, and what it implies about single fields.
pub(super) fn compile(expression: Value<'_>, at: In<'_>) -> Result<(Arc<dyn ExprTest>, Vec<Node>)> {
    let ctx = at.ctx;
    let mut p = ParseCtx::new(ctx);
    p.forgets = true;
    let mut expr = p.parse(expression)?;
    // Whatever is known of a row, a condition is not told. Only a stage says so.
    if matches!(at.place, Place::Match | Place::Document)
        && let Some(meta) = p.metas.iter().find(|m| !m.is_of_search())
    {
        return Err(meta.unknown());
    }
    if !ctx.vars.defines {
        expr.optimize(ctx).map_err(|e| optimize_error("expression", e))?;
    }
    let implied = implied(&expr, ctx);
    Ok((Arc::new(Condition { expr, ctx: ctx.clone() }), implied))
}
