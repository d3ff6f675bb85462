//! `$sum`, `$avg` and `$count` over a window: what leaves it is taken off again.

use super::bounds::Bounds;
use super::function::Function;
use super::partition::Partition;
use crate::accumulator::sum::{Total, Width};
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use crate::number::Number;
use pando_base::Result;
use std::ops::Range;

pub(super) struct WindowSum {
    input: Expr,
    average: bool,
    bounds: Bounds,
    held: Range<usize>,
    total: Total,
    /// Numbers in the window, by type: int, long, double, decimal.
    counts: [i64; 4],
    /// A number was among them that cannot be taken off exactly (decimals, infinities, NaN).
    stuck: bool,
}

impl WindowSum {
    pub(super) fn new(input: Expr, average: bool, bounds: Bounds) -> WindowSum {
        WindowSum {
            input,
            average,
            bounds,
            held: 0..0,
            total: Total::default(),
            counts: [0; 4],
            stuck: false,
        }
    }
    fn number(&self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<Option<Number>> {
        Ok(self.input.eval_doc(p.row(at)?.doc(), ctx)?.value().and_then(Number::of))
    }
    fn clear(&mut self, at: usize) {
        (self.held, self.total, self.counts, self.stuck) = (at..at, Total::default(), [0; 4], false);
    }
    fn add(&mut self, n: Number) {
        self.total.add(n);
        self.counts[kind(n)] += 1;
        self.stuck |= match n {
            Number::Double(d) => !d.is_finite(),
            Number::Decimal(_) => true,
            _ => false,
        };
    }
    fn remove(&mut self, n: Number) {
        self.counts[kind(n)] -= 1;
        let left = match self.counts.iter().rposition(|n| *n > 0) {
            Some(3) => Width::Decimal,
            Some(2) => Width::Double,
            Some(1) => Width::Long,
            _ => Width::Int,
        };
        self.total.remove(n, left);
    }
    fn result(&self) -> Val<'static> {
        let count = self.counts.iter().sum();
        match self.average {
            false => match self.total.number() {
                // A window that loses documents forgets that a small number was a long.
                Number::Long(n) if !self.bounds.only_grows() => {
                    i32::try_from(n).map_or(Val::long(n), Val::int)
                }
                n => Val::Ref(n.value()),
            },
            true if count == 0 => Val::NULL,
            true => Val::Ref(self.total.mean(count).value()),
        }
    }
}

pub(super) fn kind(n: Number) -> usize {
    match n {
        Number::Int(_) => 0,
        Number::Long(_) => 1,
        Number::Double(_) => 2,
        Number::Decimal(_) => 3,
    }
}

impl Function for WindowSum {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.bounds.restart();
        self.clear(0);
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let window = self.bounds.window(p, at)?;
        let moved = window.start - self.held.start.min(window.start);
        if window.start >= self.held.end || (moved > 0 && self.stuck) {
            self.clear(window.start);
        }
        let mut steps = 1;
        for gone in self.held.start..window.start {
            if let Some(n) = self.number(p, gone, ctx)? {
                self.remove(n);
            }
            steps += 1;
        }
        for new in self.held.end..window.end {
            if let Some(n) = self.number(p, new, ctx)? {
                self.add(n);
            }
            steps += 1;
        }
        self.held = window;
        Ok((self.result(), steps))
    }
}
