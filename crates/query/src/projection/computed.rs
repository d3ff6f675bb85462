//! Fields whose value is an aggregation expression or a literal.

use crate::ctx::QueryCtx;
use crate::expr::{Expr, ParseCtx, Scope};
use crate::facts::{Facts, MetaField};
use pando_base::Result;
use pando_bson::{DocBuilder, RawDoc, Value};
use std::fmt;

/// A value computed from the whole document.
pub struct Computed {
    expr: Expr,
    ctx: QueryCtx,
    pub(super) metas: Vec<MetaField>,
}

impl Computed {
    pub(super) fn parse(v: Value<'_>, ctx: &QueryCtx) -> Result<Computed> {
        let mut p = ParseCtx::new(ctx);
        let expr = p.parse(v)?;
        Ok(Computed { expr, metas: std::mem::take(&mut p.metas), ctx: ctx.clone() })
    }
    pub(super) fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        self.expr.optimize(ctx)
    }
    /// Adds the value under `name`; a missing one (or `$$REMOVE`) leaves the field out.
    pub(super) fn write(
        &self,
        root: &RawDoc,
        facts: Option<&Facts>,
        name: &str,
        out: &mut DocBuilder,
    ) -> Result<()> {
        self.expr.eval(&Scope::new(root, &self.ctx).with_facts(facts))?.put_to(out, name);
        Ok(())
    }
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}
