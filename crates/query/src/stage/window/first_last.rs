//! `$first` and `$last` over a window: the value at one of its ends, which may be missing.

use super::bounds::Bounds;
use super::function::Function;
use super::partition::Partition;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use pando_base::Result;

pub(super) struct FirstLast {
    pub(super) input: Expr,
    pub(super) last: bool,
    pub(super) bounds: Bounds,
}

impl Function for FirstLast {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.bounds.restart();
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let window = self.bounds.window(p, at)?;
        if window.is_empty() {
            return Ok((Val::NULL, 1));
        }
        let end = if self.last { window.end - 1 } else { window.start };
        Ok((self.input.eval_doc(p.row(end)?.doc(), ctx)?.into_owned(), 1))
    }
}
