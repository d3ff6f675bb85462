//! Fields whose value is an aggregation expression or a literal.

use super::{RowMeta, meta};
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
    /// What the value may ask of the row, where more is known here than goes along with it.
    fn told(&self, row: &RowMeta<'_>) -> Option<Facts> {
        let asks =
            |m: &MetaField| matches!(m, MetaField::RecordId | MetaField::IndexKey | MetaField::SortKey);
        if !self.metas.iter().any(asks) {
            return None;
        }
        let mut facts = row.facts.cloned().unwrap_or_default();
        facts.place = row.record_id.map(|_| {
            let mut b = DocBuilder::new();
            meta::write(MetaField::RecordId, row, "", &mut b);
            b.finish()
        });
        facts.index_key = row.index_key.map(RawDoc::to_buf);
        facts.sort_key = row.sort_key.map(RawDoc::to_buf).or(facts.sort_key);
        Some(facts)
    }
    /// Adds the value under `name`; a missing one (or `$$REMOVE`) leaves the field out.
    pub(super) fn write(
        &self,
        root: &RawDoc,
        row: &RowMeta<'_>,
        name: &str,
        out: &mut DocBuilder,
    ) -> Result<()> {
        let told = self.told(row);
        let facts = told.as_ref().or(row.facts);
        self.expr.eval(&Scope::new(root, &self.ctx).with_facts(facts))?.put_to(out, name);
        Ok(())
    }
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}
