//! `$min` and `$max`: by MongoDB's order of values; nothing over nothing is null.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use pando_base::Result;

pub(crate) struct MinMax {
    max: bool,
    /// Which of equal values stays (29 and 29.0).
    stays: Stays,
    best: Val<'static>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stays {
    /// In groups.
    Latest,
    /// In expressions and windows.
    First,
}

impl MinMax {
    pub(crate) fn new(max: bool, stays: Stays) -> MinMax {
        MinMax { max, stays, best: Val::Missing }
    }
}

impl Accumulator for MinMax {
    fn add(&mut self, v: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        if v.is_nullish() {
            return Ok(());
        }
        if let (Some(new), Some(old)) = (v.value(), self.best.value()) {
            let order = ctx.compare(new, old);
            let better = if self.max { order.is_gt() } else { order.is_lt() };
            let wins = better || order.is_eq() && self.stays == Stays::Latest;
            if !wins {
                return Ok(());
            }
        }
        self.best = v.into_owned();
        Ok(())
    }
    fn result(&mut self) -> Result<Val<'static>> {
        Ok(if self.best.is_missing() { Val::NULL } else { self.best.clone() })
    }
    fn heap_bytes(&self) -> usize {
        self.best.heap_bytes()
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        self.result()
    }
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        self.add(partial, ctx)
    }
}
