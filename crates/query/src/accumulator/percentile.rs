//! `$median` and `$percentile`: the discrete value at a rank, over all numbers of the group.
//!
//! MongoDB's "approximate" method keeps a digest; here all values are kept (bounded by the accumulator's memory)
//! and the answer is exact, which the method allows.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use crate::number::Number;
use pando_base::limits::ACCUMULATED_ARRAY_BYTES_MAX;
use pando_base::{Error, ErrorCode, Result, patience};

pub(crate) struct Percentile {
    ps: Vec<f64>,
    /// Give the one value instead of an array.
    single: bool,
    values: Vec<f64>,
}

impl Percentile {
    pub(crate) fn new(ps: Vec<f64>, single: bool) -> Percentile {
        Percentile { ps, single, values: Vec::new() }
    }
}

/// The smallest value with at least `p` of all values at or below it.
pub(crate) fn discrete(sorted: &[f64], p: f64) -> Option<f64> {
    let rank = (p * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(sorted.len().checked_sub(1)?)).copied()
}

impl Accumulator for Percentile {
    fn add(&mut self, v: Val<'_>, _: &QueryCtx) -> Result<()> {
        if let Some(n) = v.value().and_then(Number::of) {
            let x = n.to_f64();
            if !x.is_nan() {
                self.values.push(x);
                if self.values.len() * 8 > ACCUMULATED_ARRAY_BYTES_MAX {
                    return Err(Error::new(
                        ErrorCode::ExceededMemoryLimit,
                        "$percentile used too much memory and cannot spill to disk",
                    ));
                }
            }
        }
        Ok(())
    }
    fn result(&mut self) -> Result<Val<'static>> {
        patience::sort_unstable_by(&mut self.values, 1, f64::total_cmp)?;
        let value = |p: f64| discrete(&self.values, p).map_or(Val::NULL, Val::double);
        if self.single {
            return Ok(self.ps.first().map_or(Val::NULL, |p| value(*p)));
        }
        Ok(Val::array(self.ps.iter().map(|p| value(*p))))
    }
    fn heap_bytes(&self) -> usize {
        self.values.len() * 8
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        Ok(Val::array(std::mem::take(&mut self.values).into_iter().map(Val::double)))
    }
    fn merge(&mut self, partial: Val<'_>, ctx: &QueryCtx) -> Result<()> {
        for e in partial.as_array().into_iter().flatten() {
            self.add(Val::Ref(e.value()), ctx)?;
        }
        Ok(())
    }
}
