//! `$expr`: an aggregation expression as a condition.

use super::expr_bounds::implied;
use super::node::{ExprTest, Node};
use super::place::Place;
use crate::ctx::QueryCtx;
use crate::expr::spelled::spelled;
use crate::expr::{Expr, ParseCtx, optimize_error};
use crate::facts::{MetaField, no_text_score};
use pando_base::{Error, Result};
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
///
/// What rows of a search have beside their documents is missing in a command's query, in a stage it is a mistake.
pub(super) fn compile(
    expression: Value<'_>,
    place: Place,
    ctx: &QueryCtx,
) -> Result<(Arc<dyn ExprTest>, Vec<Node>)> {
    let mut p = ParseCtx::new(ctx);
    let mut expr = p.parse(expression)?;
    if place == Place::Query {
        p.metas.clear();
    }
    if p.metas.contains(&MetaField::TextScore) {
        return Err(no_text_score());
    }
    if p.metas.contains(&MetaField::SortKey) {
        return Err(Error::location(40218, "query requires sort key metadata, but it is not available"));
    }
    expr.optimize(ctx).map_err(|e| optimize_error("expression", e))?;
    let implied = implied(&expr, ctx);
    Ok((Arc::new(Condition { expr, ctx: ctx.clone() }), implied))
}
