//! What a pipeline pulls from, and what pulling gives.

use super::row::Row;
use crate::exec::{Each, Fed};
use pando_base::Result;

/// What pulling gives.
#[derive(Debug)]
pub enum Step {
    Row(Row),
    /// The input wants the caller to yield; pull again afterwards.
    NeedYield,
    Eof,
}

/// Where a pipeline's documents come from.
pub trait Input {
    fn next(&mut self) -> Result<Step>;
    /// Shows the documents to come to `each`, as far as it can go without a yield. `None` when this input cannot.
    fn feed(&mut self, _each: &mut Each<'_>) -> Option<Result<Fed>> {
        None
    }
}

/// Documents from an iterator, for tests and sources that are small.
impl<I: Iterator<Item = Row>> Input for I {
    fn next(&mut self) -> Result<Step> {
        Ok(Iterator::next(self).map_or(Step::Eof, Step::Row))
    }
}
