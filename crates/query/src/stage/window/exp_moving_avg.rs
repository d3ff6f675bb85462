//! `$expMovingAvg`: an average in which older values fade.

use super::function::Function;
use super::partition::Partition;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use crate::number::Number;
use pando_base::Result;
use pando_bson::Decimal128;

pub(super) struct ExpMovingAvg {
    pub(super) input: Expr,
    pub(super) alpha: Alpha,
    pub(super) last: Option<Number>,
    /// A decimal was seen, in this partition or an earlier one.
    pub(super) decimal: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Alpha {
    Given(Number),
    /// `2 / (N + 1)`
    Documents(i64),
}

impl Alpha {
    fn of(self, decimal: bool) -> Number {
        match self {
            Alpha::Given(n) if decimal => Number::Decimal(n.to_decimal()),
            Alpha::Given(n) => Number::Double(n.to_f64()),
            Alpha::Documents(n) if decimal => {
                Number::Decimal(Decimal128::from(2i64) / Decimal128::from(n + 1))
            }
            Alpha::Documents(n) => Number::Double(2.0 / (n as f64 + 1.0)),
        }
    }
}

impl Function for ExpMovingAvg {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.last = None;
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let row = p.row(at)?;
        let v = self.input.eval_doc(row.doc(), ctx)?;
        if let Some(n) = v.value().and_then(Number::of) {
            self.decimal |= n.is_decimal();
            let alpha = self.alpha.of(self.decimal);
            let n = if self.decimal { Number::Decimal(n.to_decimal()) } else { Number::Double(n.to_f64()) };
            self.last = Some(match self.last {
                None => n,
                Some(last) => n * alpha + last * (Number::Int(1) - alpha),
            });
        }
        Ok((self.last.map_or(Val::NULL, |n| Val::Ref(n.value())), 1))
    }
}
