//! `$min` and `$max`: by MongoDB's order of values; nothing over nothing is null.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use pando_base::Result;

pub(crate) struct MinMax {
    max: bool,
    best: Val<'static>,
}

impl MinMax {
    pub(crate) fn new(max: bool) -> MinMax {
        MinMax { max, best: Val::Missing }
    }
}

impl Accumulator for MinMax {
    fn add(&mut self, v: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        if v.is_nullish() {
            return Ok(());
        }
        if let (Some(new), Some(old)) = (v.value(), self.best.value()) {
            let order = ctx.compare(new, old);
            // Among equals (29 and 29.0) the latest stays.
            let wins = if self.max { order.is_ge() } else { order.is_le() };
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
