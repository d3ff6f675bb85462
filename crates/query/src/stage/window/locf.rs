//! `$locf`: the last value that was there.

use super::function::Function;
use super::partition::Partition;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use pando_base::Result;

pub(super) struct Locf {
    input: Expr,
    last: Val<'static>,
}

impl Locf {
    pub(super) fn new(input: Expr) -> Locf {
        Locf { input, last: Val::NULL }
    }
}

impl Function for Locf {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.last = Val::NULL;
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let row = p.row(at)?;
        let v = self.input.eval_doc(row.doc(), ctx)?;
        if !v.is_nullish() {
            self.last = v.into_owned();
        }
        Ok((self.last.clone(), 1))
    }
}
