//! `$stdDevPop` and `$stdDevSamp` over a window that documents leave. (One that only grows is an accumulator.)

use super::bounds::Bounds;
use super::function::Function;
use super::partition::Partition;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use crate::number::Number;
use pando_base::Result;

pub(super) struct StdDev {
    pub(super) input: Expr,
    pub(super) sample: bool,
    pub(super) bounds: Bounds,
}

impl Function for StdDev {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.bounds.restart();
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let window = self.bounds.window(p, at)?;
        let steps = window.len() + 1;
        let (mut count, mut mean, mut m2) = (0i64, 0f64, 0f64);
        for i in window {
            let row = p.row(i)?;
            let v = self.input.eval_doc(row.doc(), ctx)?;
            let Some(x) = v.value().and_then(Number::of).map(Number::to_f64) else { continue };
            count += 1;
            let delta = x - mean;
            mean += delta / count as f64;
            m2 += delta * (x - mean);
        }
        let v = match (count, self.sample) {
            (0, false) | (1, true) => Val::NULL,
            // As MongoDB answers these.
            (0, true) => Val::double(-0.0),
            (1, false) => Val::int(0),
            (n, sample) => Val::double((m2 / (n - i64::from(sample)) as f64).sqrt()),
        };
        Ok((v, steps))
    }
}
