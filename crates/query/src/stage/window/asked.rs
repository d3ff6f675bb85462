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

/// What a function is computed from: an accumulator's own arguments, the document's place, or one expression.
#[derive(Clone)]
pub(super) enum Asked {
    /// An accumulator of `$group`.
    Accumulator(AccSpec, Bounds),
    Rank(Kind),
    Of(Expr, What),
}

/// What is computed of an expression's values.
#[derive(Clone)]
pub(super) enum What {
    Covariance { sample: bool, bounds: Bounds },
    Derivative { unit_ms: Option<i64>, bounds: Bounds },
    ExpMovingAvg(Alpha),
    FirstLast { last: bool, bounds: Bounds },
    Integral { unit_ms: Option<i64>, bounds: Bounds },
    LinearFill,
    Locf,
    MinMax { max: bool, bounds: Bounds },
    Shift { by: i64, default: Val<'static> },
    StdDev { sample: bool, bounds: Bounds },
    Sum { average: bool, bounds: Bounds },
}

impl Asked {
    pub(super) fn start(self) -> Box<dyn Function> {
        match self {
            Asked::Accumulator(spec, bounds) => Box::new(Accumulate::new(spec, bounds)),
            Asked::Rank(kind) => Box::new(Rank::new(kind)),
            Asked::Of(input, what) => what.start(input),
        }
    }
    pub(super) fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        match self {
            Asked::Accumulator(spec, _) => spec.optimize(ctx),
            Asked::Rank(_) => Ok(()),
            Asked::Of(input, _) => input.optimize(ctx),
        }
    }
    /// How many documents behind its own it looks at; `None` when that is not known ahead.
    pub(super) fn ahead(&self) -> Option<usize> {
        match self {
            Asked::Accumulator(_, bounds) => bounds.ahead(),
            Asked::Rank(_) => Some(0),
            Asked::Of(_, what) => what.ahead(),
        }
    }
    /// Adds the paths it reads; false when it reads whole documents.
    pub(super) fn needs(&self, paths: &mut BTreeSet<String>) -> bool {
        match self {
            Asked::Accumulator(spec, _) => spec.needs(paths),
            Asked::Rank(_) => true,
            Asked::Of(input, _) => input.dependencies(paths),
        }
    }
}

impl What {
    fn ahead(&self) -> Option<usize> {
        match self {
            What::Covariance { bounds, .. }
            | What::Derivative { bounds, .. }
            | What::FirstLast { bounds, .. }
            | What::Integral { bounds, .. }
            | What::MinMax { bounds, .. }
            | What::StdDev { bounds, .. }
            | What::Sum { bounds, .. } => bounds.ahead(),
            What::ExpMovingAvg(_) | What::Locf => Some(0),
            What::Shift { by, .. } => Some(usize::try_from(*by).unwrap_or(0)),
            What::LinearFill => None,
        }
    }
    fn start(self, input: Expr) -> Box<dyn Function> {
        match self {
            What::Covariance { sample, bounds } => {
                Box::new(Covariance { input, sample, bounds, held: 0..0, sums: Sums::default() })
            }
            What::Derivative { unit_ms, bounds } => Box::new(Derivative { input, unit_ms, bounds }),
            What::ExpMovingAvg(alpha) => Box::new(ExpMovingAvg { input, alpha, last: None, decimal: false }),
            What::FirstLast { last, bounds } => Box::new(FirstLast { input, last, bounds }),
            What::Integral { unit_ms, bounds } => {
                Box::new(Integral { input, unit_ms, bounds, held: 0..0, total: Total::default() })
            }
            What::LinearFill => Box::new(LinearFill::new(input)),
            What::Locf => Box::new(Locf::new(input)),
            What::MinMax { max, bounds } => Box::new(MinMax::new(input, max, bounds)),
            What::Shift { by, default } => Box::new(Shift { output: input, by, default }),
            What::StdDev { sample, bounds } => Box::new(StdDev { input, sample, bounds }),
            What::Sum { average, bounds } => Box::new(WindowSum::new(input, average, bounds)),
        }
    }
}
