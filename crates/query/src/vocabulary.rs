//! What the tables of operators and stages hold, by name: for tools that draw queries from them.

use crate::expr::Expr;
use crate::named::{Named, Tables};
use crate::{accumulator, matcher, stage, update};

/// An operator of expressions.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    pub name: &'static str,
    /// The fewest and most positional arguments, of operators that take nothing else.
    pub arity: Option<(usize, usize)>,
}

pub fn expressions() -> Vec<Operator> {
    Expr::operators().map(|(name, arity)| Operator { name, arity }).collect()
}

/// Accumulators of `$group`.
pub fn accumulators() -> Vec<&'static str> {
    accumulator::names().map(|(name, _)| name).collect()
}

/// Functions of `$setWindowFields`: accumulators, and those that know their neighbours.
pub fn window_functions() -> Vec<&'static str> {
    let accumulators = accumulator::names().filter(|(_, in_windows)| *in_windows).map(|(name, _)| name);
    accumulators.chain(stage::window_names()).collect()
}

pub fn stages() -> Vec<&'static str> {
    stage::names().collect()
}

/// Operators below a field of a filter.
pub fn filter_operators() -> &'static [&'static str] {
    matcher::OPERATORS
}

/// Operators at the top of a filter.
pub fn filter_keywords() -> &'static [&'static str] {
    matcher::KEYWORDS
}

pub fn update_operators() -> Vec<&'static str> {
    update::names().collect()
}

/// Counts of all of them, at zero.
pub fn named() -> Named {
    Named::new(Tables {
        stages: stages(),
        filters: filter_keywords().iter().chain(filter_operators()).copied().collect(),
        expressions: expressions().into_iter().map(|op| op.name).collect(),
        accumulators: accumulators(),
        window_functions: window_functions(),
    })
}
