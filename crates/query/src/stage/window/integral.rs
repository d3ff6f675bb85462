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
    fn place(&self, p: &Partition, at: usize) -> Result<Number> {
        match (p.place(at)?, self.unit_ms) {
            (Some(Place::Date(ms)), Some(_)) => Ok(Number::Long(ms)),
            (_, Some(_)) => {
                Err(Error::location(5_423_901, "$integral with 'unit' expects the sortBy field to be a Date"))
            }
            (Some(Place::Number(n)), None) => Ok(n),
            (_, None) => Err(Error::location(
                5_423_902,
                "$integral (with no 'unit') expects the sortBy field to be numeric",
            )),
        }
    }
    /// The area between a document and the one before it.
    fn piece(&self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<Option<Number>> {
        let y = |i: usize| -> Result<Option<Number>> {
            Ok(self.input.eval_doc(p.row(i)?.doc(), ctx)?.value().and_then(Number::of))
        };
        let (x1, x2) = (self.place(p, at - 1)?, self.place(p, at)?);
        let (Some(y1), Some(y2)) = (y(at - 1)?, y(at)?) else { return Ok(None) };
        Ok(Some((y1 + y2) * (x2 - x1) / Number::Int(2)))
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
        self.place(p, window.start)?;
        let wanted = window.start + 1..window.end;
        let fresh = self.held.start != wanted.start || self.held.end > wanted.end;
        if fresh {
            (self.held, self.total) = (wanted.start..wanted.start, Total::default());
        }
        let steps = wanted.end.saturating_sub(self.held.end) + 1;
        for i in self.held.end..wanted.end {
            if let Some(area) = self.piece(p, i, ctx)? {
                self.total.add(area);
            }
        }
        self.held = wanted;
        let area = self.total.number();
        let area = self.unit_ms.map_or(area, |ms| area / Number::Long(ms));
        Ok((Val::Ref(area.value()), steps))
    }
}
