//! `$derivative`: the slope between the ends of a window.

use super::bounds::Bounds;
use super::function::Function;
use super::partition::{Partition, Place};
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use crate::number::Number;
use pando_base::{Error, Result};
use pando_bson::Value;

pub(super) struct Derivative {
    pub(super) input: Expr,
    pub(super) unit_ms: Option<i64>,
    pub(super) bounds: Bounds,
}

impl Derivative {
    fn place(&self, p: &Partition, at: usize) -> Result<Number> {
        match (p.place(at)?, self.unit_ms) {
            (Some(Place::Date(ms)), Some(_)) => Ok(Number::Long(ms)),
            (_, Some(_)) => Err(Error::location(
                5_624_900,
                "$derivative with 'unit' expects the sortBy field to be a Date",
            )),
            (Some(Place::Date(_)), None) => {
                Err(Error::location(5_624_901, "$derivative where the sortBy is a Date requires an 'unit'"))
            }
            (Some(Place::Number(n)), None) => Ok(n),
            (None, None) => Err(Error::location(
                5_624_902,
                "$derivative (with no 'unit') expects the sortBy field to be numeric",
            )),
        }
    }
}

/// `$subtract` of two inputs; `None` is null.
fn minus(b: &Val<'_>, a: &Val<'_>) -> Result<Option<Number>> {
    if a.is_nullish() || b.is_nullish() {
        return Ok(None);
    }
    match (b.value(), a.value()) {
        (Some(Value::DateTime(b)), Some(Value::DateTime(a))) => Ok(Some(Number::Long(b.wrapping_sub(a)))),
        (Some(y), Some(x)) => match (Number::of(y), Number::of(x)) {
            (Some(y), Some(x)) => Ok(Some(y - x)),
            _ => {
                Err(Error::type_mismatch(format!("can't $subtract {} from {}", x.type_name(), y.type_name())))
            }
        },
        _ => Ok(None),
    }
}

impl Function for Derivative {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.bounds.restart();
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let window = self.bounds.window(p, at)?;
        if window.is_empty() {
            return Ok((Val::NULL, 1));
        }
        let (first, last) = (window.start, window.end - 1);
        let (x1, x2) = (self.place(p, first)?, self.place(p, last)?);
        let row_y1 = p.row(first)?;
        let y1 = self.input.eval_doc(row_y1.doc(), ctx)?;
        let row_y2 = p.row(last)?;
        let y2 = self.input.eval_doc(row_y2.doc(), ctx)?;
        let (Some(dy), dx) = (minus(&y2, &y1)?, x2 - x1) else { return Ok((Val::NULL, 1)) };
        if dx.is_zero() {
            return Ok((Val::NULL, 1));
        }
        let slope = dy / dx;
        let slope = self.unit_ms.map_or(slope, |ms| slope * Number::Long(ms));
        Ok((Val::Ref(slope.value()), 1))
    }
}
