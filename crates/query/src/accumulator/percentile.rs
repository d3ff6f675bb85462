//! `$median` and `$percentile`: the discrete value at a rank, over all numbers of the group.
//!
//! MongoDB's "approximate" method keeps a digest; here all values are kept (bounded by the accumulator's memory)
//! and the answer is exact, which the method allows.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, ParseCtx, Val};
use crate::number::Number;
use pando_base::limits::ACCUMULATED_ARRAY_BYTES_MAX;
use pando_base::{Error, ErrorCode, Result, patience};
use pando_bson::Value;

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

/// Input and fractions of a `$median` or `$percentile`.
pub(crate) fn parse_percentile(
    name: &'static str,
    v: Value<'_>,
    single: bool,
    p: &mut ParseCtx<'_>,
) -> Result<(Expr, Vec<f64>)> {
    let Value::Document(d) = v else {
        return Err(Error::location(
            7436100,
            format!("specification must be an object; found {name}: {v:#}"),
        ));
    };
    let missing = |field: &str| {
        Error::location(40414, format!("BSON field '{name}.{field}' is missing but a required field"))
    };
    let (mut input, mut fractions, mut method) = (None, None, None);
    for f in d {
        match f.name() {
            "input" => input = Some(p.parse(f.value())?),
            "p" if !single => fractions = Some(f.value()),
            "method" => method = Some(f.value()),
            other => {
                return Err(Error::location(
                    40415,
                    format!("BSON field '{name}.{other}' is an unknown field."),
                ));
            }
        }
    }
    let input = input.ok_or_else(|| missing("input"))?;
    match method.ok_or_else(|| missing("method"))? {
        Value::String("approximate") => {}
        _ => {
            return Err(Error::bad_value("Currently only 'approximate' can be used as percentile 'method'."));
        }
    }
    if single {
        return Ok((input, vec![0.5]));
    }
    let not_fractions = || {
        Error::location(
            7750301,
            "The $percentile 'p' field must be an array of numbers from [0.0, 1.0]".to_owned(),
        )
    };
    let Value::Array(list) = fractions.ok_or_else(|| missing("p"))? else { return Err(not_fractions()) };
    let mut ps = Vec::new();
    for f in list {
        let x = Number::of(f.value()).map(Number::to_f64).ok_or_else(not_fractions)?;
        if !(0.0..=1.0).contains(&x) {
            return Err(not_fractions());
        }
        ps.push(x);
    }
    if ps.is_empty() {
        return Err(not_fractions());
    }
    Ok((input, ps))
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
