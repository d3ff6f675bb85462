//! `$shift`: a value from the document some places before or behind.

use super::function::Function;
use super::partition::Partition;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use pando_base::Result;

pub(super) struct Shift {
    pub(super) output: Expr,
    pub(super) by: i64,
    pub(super) default: Val<'static>,
}

impl Function for Shift {
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let other = usize::try_from((at as i64).saturating_add(self.by)).ok();
        Ok(match other.filter(|i| *i < p.len()) {
            Some(i) => (self.output.eval_doc(p.row(i)?.doc(), ctx)?.into_owned(), 1),
            None => (self.default.clone(), 1),
        })
    }
}
