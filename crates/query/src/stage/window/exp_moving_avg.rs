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
    pub(super) last: Option<Decimal128>,
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
    fn decimal(self) -> Decimal128 {
        match self {
            Alpha::Given(n) => n.to_decimal(),
            Alpha::Documents(n) => Decimal128::from(2i64) / Decimal128::from(n + 1),
        }
    }
}

impl Function for ExpMovingAvg {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.last = None;
        Ok(())
    }
    /// It is computed in decimals, and told as one only where there are some.
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let row = p.row(at)?;
        let v = self.input.eval_doc(row.doc(), ctx)?;
        if let Some(n) = v.value().and_then(Number::of) {
            self.decimal |= n.is_decimal();
            let (n, alpha) = (n.to_decimal(), self.alpha.decimal());
            self.last = Some(match self.last {
                None => n,
                Some(last) => n * alpha + last * (Decimal128::from(1i64) - alpha),
            });
        }
        let told = |n: Decimal128| if self.decimal { Number::Decimal(n) } else { Number::Double(n.to_f64()) };
        Ok((self.last.map_or(Val::NULL, |n| Val::Ref(told(n).value())), 1))
    }
}
