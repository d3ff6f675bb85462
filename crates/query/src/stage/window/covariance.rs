//! `$covariancePop` and `$covarianceSamp`: how two numbers move together over a window.

use super::bounds::Bounds;
use super::function::Function;
use super::partition::Partition;
use super::sum::kind;
use crate::accumulator::sum::{Total, Width};
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use crate::number::Number;
use pando_base::Result;
use pando_bson::Decimal128;
use std::ops::Range;

pub(super) struct Covariance {
    pub(super) input: Expr,
    pub(super) sample: bool,
    pub(super) bounds: Bounds,
    pub(super) held: Range<usize>,
    pub(super) sums: Sums,
}

/// Numbers that come and go.
#[derive(Default)]
struct Moving {
    total: Total,
    /// By type: int, long, double, decimal.
    counts: [i64; 4],
    /// Infinities above and below, and NaN.
    beyond: [i64; 3],
}

impl Moving {
    fn count(&mut self, n: Number, by: i64) {
        self.counts[kind(n)] += by;
        if let Some(at) = beyond(n) {
            self.beyond[at] += by;
        }
    }
    fn add(&mut self, n: Number) {
        self.count(n, 1);
        if beyond(n).is_none() {
            self.total.add(n);
        }
    }
    fn remove(&mut self, n: Number) {
        self.count(n, -1);
        if beyond(n).is_none() {
            // A decimal may have come as a double, so it is not looked for among the decimals.
            match n {
                Number::Decimal(d) => self.total.add(Number::Decimal(-d)),
                n => self.total.remove(n, Width::Int),
            }
        }
    }
    fn number(&self) -> Number {
        let decimal = self.counts[3] > 0;
        let special = match self.beyond.map(|n| n > 0) {
            [false, false, false] => None,
            [true, false, false] => Some(f64::INFINITY),
            [false, true, false] => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        };
        match (special, decimal) {
            (Some(d), false) => Number::Double(d),
            (Some(d), true) => Number::Decimal(Decimal128::from_f64(d)),
            (None, true) => Number::Decimal(self.total.decimal_total()),
            (None, false) => Number::Double(self.total.to_f64() + self.total.decimal_part().to_f64()),
        }
    }
    fn mean(&self, count: i64) -> Number {
        self.number() / Number::Long(count)
    }
}

/// Which of the three beyonds a number is.
fn beyond(n: Number) -> Option<usize> {
    let special = |nan: bool, infinite: bool, negative: bool| match (nan, infinite, negative) {
        (true, ..) => Some(2),
        (_, true, negative) => Some(usize::from(negative)),
        _ => None,
    };
    match n {
        Number::Double(d) => special(d.is_nan(), d.is_infinite(), d < 0.0),
        Number::Decimal(d) => special(d.is_nan(), d.is_infinite(), d.is_sign_negative()),
        _ => None,
    }
}

/// Sums of both numbers, and of the products of their distances from the means: Welford's way, in both directions.
/// Pairs with an infinity or NaN are in the sums, but not among the products.
#[derive(Default)]
pub(super) struct Sums {
    count: i64,
    x: Moving,
    y: Moving,
    both: Moving,
}

impl Sums {
    fn add(&mut self, x: Number, y: Number) {
        if beyond(x).or(beyond(y)).is_some() {
            self.x.add(x);
            self.y.add(y);
            return;
        }
        let before = (self.count > 0).then(|| x - self.x.mean(self.count));
        self.count += 1;
        self.x.add(x);
        self.y.add(y);
        if let Some(dx) = before {
            self.both.add(dx * (y - self.y.mean(self.count)));
        }
    }
    fn remove(&mut self, x: Number, y: Number) {
        if beyond(x).or(beyond(y)).is_some() {
            self.x.remove(x);
            self.y.remove(y);
            return;
        }
        let dy = y - self.y.mean(self.count);
        self.count -= 1;
        self.x.remove(x);
        self.y.remove(y);
        match self.count {
            // A single pair does not move.
            ..=1 => self.both = Moving::default(),
            count => self.both.remove((x - self.x.mean(count)) * dy),
        }
    }
    fn value(&self, sample: bool) -> Val<'static> {
        match if sample { self.count - 1 } else { self.count } {
            ..=0 => Val::NULL,
            _ if self.count == 1 => Val::double(0.0),
            // By a double: that is where the digits of a decimal come from.
            n => Val::Ref((self.both.number() / Number::Double(n as f64)).value()),
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
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.bounds.restart();
        (self.held, self.sums) = (0..0, Sums::default());
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let window = self.bounds.window(p, at)?;
        if window.start >= self.held.end || window.start < self.held.start || self.held.end > window.end {
            (self.held, self.sums) = (window.start..window.start, Sums::default());
        }
        let steps = window.end - self.held.end + window.start - self.held.start + 1;
        for i in self.held.end..window.end {
            if let Some((x, y)) = self.pair(p, i, ctx)? {
                self.sums.add(x, y);
            }
        }
        for i in self.held.start..window.start {
            if let Some((x, y)) = self.pair(p, i, ctx)? {
                self.sums.remove(x, y);
            }
        }
        self.held = window;
        Ok((self.sums.value(self.sample), steps))
    }
}
