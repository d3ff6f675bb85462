//! `$sample`: the first ones in a random order.

use super::needs::Needs;
use super::parsed::Parsed;
use super::row::Row;
use super::running::{Running, Start};
use super::sort::KEEP_KEY;
use super::step::Step;
use super::upstream::Upstream;
use crate::expr::ParseCtx;
use crate::facts::Facts;
use crate::number::Number;
use crate::sort::{SortedRows, Sorter, SpillSpace};
use pando_base::{Error, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, Elem, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// So many documents, drawn by lot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(super) size: usize,
    /// Fields that somebody looks at.
    pub(super) keep: Option<BTreeSet<String>>,
    /// Rows go on with their lots.
    pub(super) keep_key: bool,
}

impl Sample {
    /// As a shard is told to draw: rows go on with their lots.
    pub(super) fn forwarded_text(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.doc("$sample", |d| {
            d.i64("size", i64::try_from(self.size).unwrap_or(i64::MAX)).bool(KEEP_KEY, true);
        });
        b.finish()
    }
}

struct Sampling {
    size: usize,
    keep: Option<BTreeSet<String>>,
    keep_key: bool,
    spill: Option<Arc<dyn SpillSpace>>,
    state: State,
}

enum State {
    Fresh,
    Filling(Sorter<Row>),
    Draining(SortedRows<Row>),
    Done,
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Sample> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(28745, "the $sample stage specification must be an object"));
    };
    let (mut size, mut keep_key) = (None, false);
    for f in spec {
        if f.name() == KEEP_KEY && p.forwarded {
            keep_key = true;
            continue;
        }
        if f.name() != "size" {
            return Err(Error::location(28748, format!("unrecognized option to $sample: {}", f.name())));
        }
        let Some(n) = Number::of(f.value()) else {
            return Err(Error::location(28746, "size argument to $sample must be a number"));
        };
        let nan = f.value().as_f64().is_some_and(f64::is_nan);
        let below = f.value().as_f64().is_some_and(|f| f < 0.0);
        let n = if nan { 0 } else { n.truncate_i64().unwrap_or(if below { i64::MIN } else { i64::MAX }) };
        if n < 0 {
            return Err(Error::location(28747, "size argument to $sample must not be negative"));
        }
        size = Some(n as u64);
    }
    let size = size.ok_or_else(|| Error::location(28749, "$sample stage must specify a size"))?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    Ok(Sample { size, keep: None, keep_key })
}

/// A row that is sorted by its lot.
fn with_lot(row: Row, lot: u64) -> Row {
    let mut key = ArrayBuilder::new();
    key.value(Value::Int64(lot as i64));
    let facts = Facts { sort_key: Some(key.finish()), ..row.facts().cloned().unwrap_or_default() };
    row.with_facts(Some(Box::new(facts)))
}

impl Parsed for Sample {
    fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        let Sample { size, keep, keep_key } = self;
        Ok(Box::new(Sampling { size, keep, keep_key, spill: run.spill(), state: State::Fresh }))
    }
    fn needs(&self, _: &mut Needs) {}
}

impl Sampling {
    fn fill(&self, sorter: &mut Sorter<Row>, up: &mut Upstream<'_>) -> Result<bool> {
        loop {
            match up.next()? {
                Step::Row(row) => {
                    // As a long of BSON: it may have to be one.
                    let lot = up.ctx().random.next_u64() >> 1;
                    let key = lot.to_be_bytes();
                    if sorter.wants(&key) {
                        let row = row.narrowed(self.keep.as_ref());
                        sorter.add(&key, if self.keep_key { with_lot(row, lot) } else { row })?;
                    }
                }
                Step::NeedYield => return Ok(false),
                Step::Eof => return Ok(true),
            }
        }
    }
}

impl Running for Sampling {
    fn held_bytes(&self) -> usize {
        match &self.state {
            State::Filling(sorter) => sorter.held_bytes(),
            State::Draining(rows) => rows.held_bytes(),
            State::Fresh | State::Done => 0,
        }
    }
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Fresh if self.size == 0 => return Ok(Step::Eof),
                State::Fresh => {
                    let sorter = Sorter::new(Some(self.size), up.ctx().memory.sort, self.spill.clone());
                    self.state = State::Filling(sorter);
                }
                State::Filling(mut sorter) => {
                    if !self.fill(&mut sorter, up)? {
                        self.state = State::Filling(sorter);
                        return Ok(Step::NeedYield);
                    }
                    self.state = State::Draining(sorter.finish()?);
                }
                State::Draining(mut rows) => {
                    let Some((_, row)) = rows.next_row()? else { return Ok(Step::Eof) };
                    self.state = State::Draining(rows);
                    return Ok(Step::Row(row));
                }
                State::Done => return Ok(Step::Eof),
            }
        }
    }
}
