//! `$linearFill`: values between two known ones lie on the line between them.

use super::function::Function;
use super::partition::{Partition, Place};
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use crate::number::Number;
use pando_base::{Error, Result};
use pando_bson::Value;

pub(super) struct LinearFill {
    input: Expr,
    /// The known points around the present document.
    left: Option<(Number, Number)>,
    right: Option<(usize, Number, Number)>,
    /// There is no known point from here on.
    exhausted: bool,
}

impl LinearFill {
    pub(super) fn new(input: Expr) -> LinearFill {
        LinearFill { input, left: None, right: None, exhausted: false }
    }
    fn place(&self, p: &Partition, at: usize) -> Result<Number> {
        if at > 0 {
            let (a, b) = (p.sort_value(at - 1)?, p.sort_value(at)?);
            if pando_bson::compare::cmp_values(
                a.value().unwrap_or(Value::Null),
                b.value().unwrap_or(Value::Null),
            )
            .is_eq()
            {
                return Err(Error::location(6_050_106, "There can be no repeated values in the sort field"));
            }
        }
        match p.place(at)? {
            Some(Place::Date(ms)) => Ok(Number::Long(ms)),
            Some(Place::Number(n)) => Ok(n),
            None => Err(Error::type_mismatch(
                "$linearFill and fill with method: linear require the sort field to be a number or a date",
            )),
        }
    }
    /// The value there; `None` when it is to be filled.
    fn known(&self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<Option<Number>> {
        let row = p.row(at)?;
        let v = self.input.eval_doc(row.doc(), ctx)?;
        if v.is_nullish() {
            return Ok(None);
        }
        let n = v.value().and_then(Number::of);
        n.map(Some).ok_or_else(|| {
            let text = format!("Value to be filled must be numeric or nullish, but found {}", v.type_name());
            Error::type_mismatch(text)
        })
    }
}

impl Function for LinearFill {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        (self.left, self.right, self.exhausted) = (None, None, false);
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let x = self.place(p, at)?;
        if let Some(y) = self.known(p, at, ctx)? {
            self.left = Some((x, y));
            return Ok((Val::Ref(y.value()), 1));
        }
        let Some((x1, y1)) = self.left else { return Ok((Val::NULL, 1)) };
        let mut steps = 1;
        if !self.exhausted && self.right.as_ref().is_none_or(|(i, ..)| *i < at) {
            self.right = None;
            for i in at + 1..p.len() {
                steps += 1;
                if let Some(y) = self.known(p, i, ctx)? {
                    self.right = Some((i, self.place(p, i)?, y));
                    break;
                }
            }
            self.exhausted = self.right.is_none();
        }
        let Some((_, x2, y2)) = self.right else { return Ok((Val::NULL, steps)) };
        let y = y1 + (x - x1) * ((y2 - y1) / (x2 - x1));
        Ok((Val::Ref(y.value()), steps))
    }
}
