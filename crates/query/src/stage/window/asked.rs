//! A window function as it was asked for.

use super::accumulate::Accumulate;
use super::bounds::Bounds;
use super::covariance::{Covariance, Sums};
use super::derivative::Derivative;
use super::exp_moving_avg::{Alpha, ExpMovingAvg};
use super::first_last::FirstLast;
use super::function::Function;
use super::integral::Integral;
use super::linear_fill::LinearFill;
use super::locf::Locf;
use super::min_max::MinMax;
use super::rank::{Kind, Rank};
use super::shift::Shift;
use super::std_dev::StdDev;
use super::sum::WindowSum;
use crate::accumulator::{AccSpec, sum::Total};
use crate::ctx::QueryCtx;
use crate::expr::{Expr, Val};
use pando_base::Result;
use std::collections::BTreeSet;

#[derive(Clone)]
pub(super) enum Asked {
    /// An accumulator of `$group`.
    Accumulator(AccSpec, Bounds),
    Covariance {
        input: Expr,
        sample: bool,
        bounds: Bounds,
    },
    Derivative {
        input: Expr,
        unit_ms: Option<i64>,
        bounds: Bounds,
    },
    ExpMovingAvg {
        input: Expr,
        alpha: Alpha,
    },
    FirstLast {
        input: Expr,
        last: bool,
        bounds: Bounds,
    },
    Integral {
        input: Expr,
        unit_ms: Option<i64>,
        bounds: Bounds,
    },
    LinearFill(Expr),
    Locf(Expr),
    MinMax {
        input: Expr,
        max: bool,
        bounds: Bounds,
    },
    Rank(Kind),
    Shift {
        output: Expr,
        by: i64,
        default: Val<'static>,
    },
    StdDev {
        input: Expr,
        sample: bool,
        bounds: Bounds,
    },
    Sum {
        input: Expr,
        average: bool,
        bounds: Bounds,
    },
}

impl Asked {
    pub(super) fn start(self) -> Box<dyn Function> {
        match self {
            Asked::Accumulator(spec, bounds) => Box::new(Accumulate::new(spec, bounds)),
            Asked::Covariance { input, sample, bounds } => {
                Box::new(Covariance { input, sample, bounds, held: 0..0, sums: Sums::default() })
            }
            Asked::Derivative { input, unit_ms, bounds } => Box::new(Derivative { input, unit_ms, bounds }),
            Asked::ExpMovingAvg { input, alpha } => {
                Box::new(ExpMovingAvg { input, alpha, last: None, decimal: false })
            }
            Asked::FirstLast { input, last, bounds } => Box::new(FirstLast { input, last, bounds }),
            Asked::Integral { input, unit_ms, bounds } => {
                Box::new(Integral { input, unit_ms, bounds, held: 0..0, total: Total::default() })
            }
            Asked::LinearFill(input) => Box::new(LinearFill::new(input)),
            Asked::Locf(input) => Box::new(Locf::new(input)),
            Asked::MinMax { input, max, bounds } => Box::new(MinMax::new(input, max, bounds)),
            Asked::Rank(kind) => Box::new(Rank::new(kind)),
            Asked::Shift { output, by, default } => Box::new(Shift { output, by, default }),
            Asked::StdDev { input, sample, bounds } => Box::new(StdDev { input, sample, bounds }),
            Asked::Sum { input, average, bounds } => Box::new(WindowSum::new(input, average, bounds)),
        }
    }
    pub(super) fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        match self {
            Asked::Accumulator(spec, _) => spec.optimize(ctx),
            Asked::Covariance { input, .. }
            | Asked::Derivative { input, .. }
            | Asked::ExpMovingAvg { input, .. }
            | Asked::FirstLast { input, .. }
            | Asked::Integral { input, .. }
            | Asked::LinearFill(input)
            | Asked::Locf(input)
            | Asked::MinMax { input, .. }
            | Asked::Shift { output: input, .. }
            | Asked::StdDev { input, .. }
            | Asked::Sum { input, .. } => input.optimize(ctx),
            Asked::Rank(_) => Ok(()),
        }
    }
    /// Adds the paths it reads; false when it reads whole documents.
    pub(super) fn needs(&self, paths: &mut BTreeSet<String>) -> bool {
        match self {
            Asked::Accumulator(spec, _) => spec.needs(paths),
            Asked::Covariance { input, .. }
            | Asked::Derivative { input, .. }
            | Asked::ExpMovingAvg { input, .. }
            | Asked::FirstLast { input, .. }
            | Asked::Integral { input, .. }
            | Asked::LinearFill(input)
            | Asked::Locf(input)
            | Asked::MinMax { input, .. }
            | Asked::Shift { output: input, .. }
            | Asked::StdDev { input, .. }
            | Asked::Sum { input, .. } => input.dependencies(paths),
            Asked::Rank(_) => true,
        }
    }
}
