//! `$integral`: the area below the line through the points of a window.

use super::bounds::Bounds;
use super::function::Function;
use super::partition::{Partition, Place};
use crate::accumulator::sum::Total;
use crate::ctx::QueryCtx;
use crate::expr::Expr;
use crate::expr::Val;
use crate::number::Number;
use pando_base::{Error, Result};
use std::ops::Range;

pub(super) struct Integral {
    pub(super) input: Expr,
    pub(super) unit_ms: Option<i64>,
    pub(super) bounds: Bounds,
    /// The pieces that are in the total: each lies between two neighbours.
    pub(super) held: Range<usize>,
    pub(super) total: Total,
}

impl Integral {
    /// Where a document lies: both of its values have to be numbers, or the first one a date.
    fn point(&self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Number, Number)> {
        let y = self.input.eval_doc(p.row(at)?.doc(), ctx)?.value().and_then(Number::of);
        let (Some(x), Some(y)) = (p.place(at)?, y) else {
            return Err(Error::location(
                5_423_900,
                "The input value of $integral window function must be a vector of 2 value, the first value must be numeric or \
                 date type and the second must be numeric.",
            ));
        };
        match (x, self.unit_ms) {
            (Place::Date(ms), Some(_)) => Ok((Number::Long(ms), y)),
            (Place::Number(n), None) => Ok((n, y)),
            (_, Some(_)) => {
                Err(Error::location(5_423_901, "$integral with 'unit' expects the sortBy field to be a Date"))
            }
            (_, None) => Err(Error::location(
                5_423_902,
                "$integral (with no 'unit') expects the sortBy field to be numeric",
            )),
        }
    }
    /// The area between a document and the one before it.
    fn piece(&self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<Number> {
        let ((x1, y1), (x2, y2)) = (self.point(p, at - 1, ctx)?, self.point(p, at, ctx)?);
        Ok((y1 + y2) * (x2 - x1) / Number::Int(2))
    }
}

impl Function for Integral {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.bounds.restart();
        (self.held, self.total) = (0..0, Total::default());
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let window = self.bounds.window(p, at)?;
        if window.is_empty() {
            return Ok((Val::NULL, 1));
        }
        self.point(p, window.start, ctx)?;
        let wanted = window.start + 1..window.end;
        let fresh = self.held.start != wanted.start || self.held.end > wanted.end;
        if fresh {
            (self.held, self.total) = (wanted.start..wanted.start, Total::default());
        }
        let steps = wanted.end.saturating_sub(self.held.end) + 1;
        for i in self.held.end..wanted.end {
            self.total.add(self.piece(p, i, ctx)?);
        }
        self.held = wanted;
        let area = self.total.number();
        let area = self.unit_ms.map_or(area, |ms| area / Number::Long(ms));
        Ok((Val::Ref(area.value()), steps))
    }
}
