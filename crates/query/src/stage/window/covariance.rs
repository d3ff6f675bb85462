//! `$covariancePop` and `$covarianceSamp`: how two numbers move together over a window.

use super::Function;
use super::bounds::Bounds;
use super::partition::Partition;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use crate::number::Number;
use pando_base::Result;
use pando_bson::Value;
use std::collections::BTreeSet;
use std::ops::Range;

pub(super) struct Covariance {
    pub(super) input: Expr,
    pub(super) sample: bool,
    pub(super) bounds: Bounds,
    pub(super) held: Range<usize>,
    pub(super) sums: Sums,
}

/// Means of both, and the sum of products of distances from them.
#[derive(Default)]
pub(super) struct Sums {
    count: f64,
    x: f64,
    y: f64,
    both: f64,
    decimal: bool,
}

impl Sums {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        let dx = x - self.x;
        self.x += dx / self.count;
        self.y += (y - self.y) / self.count;
        self.both += dx * (y - self.y);
    }
    fn value(&self, sample: bool) -> Val<'static> {
        let n = if sample { self.count - 1.0 } else { self.count };
        if n <= 0.0 {
            return Val::NULL;
        }
        let v = self.both / n;
        match self.decimal {
            true => Val::Ref(Value::Decimal128(pando_bson::Decimal128::from_f64(v))),
            false => Val::double(v),
        }
    }
}

impl Covariance {
    fn pair(&self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<Option<(Number, Number)>> {
        let row = p.row(at)?;
        let v = self.input.eval_doc(row.doc(), ctx)?;
        let Some(list) = v.as_array().filter(|a| a.count() == 2) else { return Ok(None) };
        let mut numbers = list.iter().map(|e| Number::of(e.value()));
        Ok(match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(x), Some(y)) => Some((x, y)),
            _ => None,
        })
    }
}

impl Function for Covariance {
    fn needs(&self, paths: &mut BTreeSet<String>) -> bool {
        self.input.dependencies(paths)
    }
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.bounds.restart();
        (self.held, self.sums) = (0..0, Sums::default());
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let window = self.bounds.window(p, at)?;
        if self.held.start != window.start || self.held.end > window.end {
            (self.held, self.sums) = (window.start..window.start, Sums::default());
        }
        let steps = window.end - self.held.end + 1;
        for i in self.held.end..window.end {
            if let Some((x, y)) = self.pair(p, i, ctx)? {
                self.sums.decimal |= x.is_decimal() || y.is_decimal();
                self.sums.add(x.to_f64(), y.to_f64());
            }
        }
        self.held = window;
        Ok((self.sums.value(self.sample), steps))
    }
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        self.input.optimize(ctx)
    }
}
