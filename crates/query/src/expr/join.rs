//! Operators whose constant arguments can be put together ahead, though others are only known with a document.
//!
//! `{$add: ["$a", 3, {$add: ["$b", 4]}]}` becomes `{$add: ["$a", "$b", 7]}`. What is wrong with the constants alone
//! comes out before any document is read. Arguments are optimized when this runs, so one pass is enough: an
//! argument list never grows again once its own nested lists were taken in.

use super::tree::{Call, Expr, Joins, Nary};
use super::value::Val;
use crate::ctx::QueryCtx;
use pando_base::Result;

impl Nary {
    fn joins(&self) -> bool {
        match self.joins {
            Joins::No => false,
            Joins::InOrder | Joins::AnyOrder => true,
            Joins::SeveralInAnyOrder => self.args.len() > 1,
        }
    }

    /// Takes in nested lists of the same operator, then makes constants one. The arguments are optimized already,
    /// and not all of them are constant.
    pub(super) fn join_constants(&mut self, ctx: &QueryCtx) -> Result<()> {
        if !self.joins() {
            return Ok(());
        }
        self.take_in_nested();
        if self.joins != Joins::InOrder {
            // A stable sort: all others first, then the constants.
            self.args.sort_by_key(|e| e.as_const().is_some());
        }
        let (mut joined, mut run) = (Vec::with_capacity(self.args.len()), Vec::new());
        for e in std::mem::take(&mut self.args) {
            match e {
                Expr::Const(v) => run.push(v),
                other => {
                    self.join_run(&mut run, &mut joined, ctx)?;
                    joined.push(other);
                }
            }
        }
        self.join_run(&mut run, &mut joined, ctx)?;
        self.args = joined;
        Ok(())
    }

    fn take_in_nested(&mut self) {
        let nested = |e: &Expr| matches!(e, Expr::Nary(n) if n.name == self.name && n.joins());
        if !self.args.iter().any(nested) {
            return;
        }
        let mut flat = Vec::with_capacity(self.args.len());
        for e in std::mem::take(&mut self.args) {
            match e {
                Expr::Nary(n) if n.name == self.name && n.joins() => flat.extend(n.args),
                other => flat.push(other),
            }
        }
        self.args = flat;
    }

    /// The constants of `run` become one, unless it is too large to keep.
    fn join_run(&self, run: &mut Vec<Val<'static>>, out: &mut Vec<Expr>, ctx: &QueryCtx) -> Result<()> {
        if run.len() > 1 {
            let value = (self.f)(run, &Call { name: self.name, ctx })?.into_owned();
            if ctx.may_keep(value.heap_bytes()) {
                *run = vec![value];
            }
        }
        out.extend(run.drain(..).map(Expr::Const));
        Ok(())
    }
}
