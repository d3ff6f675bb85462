//! `$sort`: blocks, keeps only the top when a `$limit` follows, spills when it may.

use super::bounded_sort::BoundedSort;
use super::held::Held;
use super::needs::Needs;
use super::parsed::{Origin, Parsed};
use super::row::Row;
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::expr::ParseCtx;
use crate::facts::Facts;
use crate::sort::{SortKeys, SortPattern, SortStats, SortedRows, Sorter, SpillSpace};
use pando_base::{Error, Result};
use pando_bson::{DocBuf, DocBuilder, Elem, Value};
use std::sync::Arc;

/// Documents in an order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sort {
    pub(super) pattern: Arc<SortPattern>,
    /// No more are wanted.
    pub(super) limit: Option<u64>,
    /// Rows go on with their keys.
    pub(super) keep_key: bool,
    /// Buckets come nearly in this order.
    pub(super) bounded: Option<BoundedBy>,
}

/// The option of a forwarded stage whose rows go on with their keys.
pub(super) const KEEP_KEY: &str = "$_internalOutputSortKeyMetadata";

/// What bounds the times of measurements still to come.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BoundedBy {
    pub(super) time_field: String,
    /// Which end of buckets they come by: `min` or `max`.
    pub(super) end: &'static str,
    /// A row may be so much later than that.
    pub(super) offset_secs: i64,
}

struct Sorting {
    keys: SortKeys,
    limit: Option<u64>,
    /// Rows go on with their keys.
    keep_key: bool,
    spill: Option<Arc<dyn SpillSpace>>,
    stats: SortStats,
    state: State,
}

enum State {
    Fresh,
    Filling(Sorter<Row>),
    Draining(SortedRows<Row>),
    Done,
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Sort> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(15973, "the $sort key specification must be an object"));
    };
    if spec.is_empty() {
        return Err(Error::location(15976, "$sort stage must have at least one sort key"));
    }
    let keep_key = p.forwarded && spec.elem(KEEP_KEY).is_some();
    let pattern = match keep_key {
        false => SortPattern::parse(spec)?,
        true => {
            let mut order = DocBuilder::new();
            spec.iter().filter(|e| e.name() != KEEP_KEY).for_each(|e| {
                order.elem(e);
            });
            SortPattern::parse(&order.finish())?
        }
    };
    p.metas.extend(pattern.metas());
    Ok(Sort { keep_key, ..Sort::by(pattern) })
}

impl Sort {
    pub(super) fn by(pattern: SortPattern) -> Sort {
        Sort { pattern: Arc::new(pattern), limit: None, keep_key: false, bounded: None }
    }
    /// As it is written.
    pub(super) fn text(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.raw_doc("$sort", &self.pattern.spec);
        b.finish()
    }
    /// As a shard is told to sort: rows go on with their keys.
    pub(super) fn forwarded_text(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        b.doc("$sort", |d| {
            d.elems_of(&self.pattern.spec).bool(KEEP_KEY, true);
        });
        b.finish()
    }
    /// How explain shows a sort that buckets come in the order of.
    pub(super) fn shown_bounded(&self, by: &BoundedBy) -> DocBuf {
        let mut b = DocBuilder::new();
        b.doc("$_internalBoundedSort", |d| {
            d.raw_doc("sortKey", &self.pattern.spec);
            d.doc("bound", |b| {
                b.str("base", by.end).i64("offsetSeconds", by.offset_secs);
            });
            d.i64("limit", self.limit.unwrap_or(0) as i64);
        });
        b.finish()
    }
}

impl Parsed for Sort {
    fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        let keys = SortKeys::new(self.pattern, run.ctx.collation.clone());
        if let Some(by) = self.bounded {
            return Ok(Box::new(BoundedSort::start(keys, self.limit, by.time_field, run)?));
        }
        Ok(Box::new(Sorting {
            keys,
            limit: self.limit,
            keep_key: self.keep_key,
            spill: run.spill(),
            stats: SortStats::default(),
            state: State::Fresh,
        }))
    }
    fn needs(&self, needs: &mut Needs) {
        for part in self.pattern.parts.iter().filter(|p| p.meta.is_none()) {
            needs.add(&part.path);
        }
    }
    fn origin(&self, path: &str) -> Option<Origin> {
        Some(Origin::same(path))
    }
}

impl Sorting {
    fn with_key(&mut self, row: Row) -> Result<Row> {
        let sort_key = Some(self.keys.values(row.doc(), row.facts())?);
        let facts = Facts { sort_key, ..row.facts().cloned().unwrap_or_default() };
        Ok(row.with_facts(Some(Box::new(facts))))
    }
    fn fill(&mut self, sorter: &mut Sorter<Row>, up: &mut Upstream<'_>) -> Result<bool> {
        loop {
            match up.next()? {
                Step::Row(row) => {
                    let row = match self.keep_key {
                        true => self.with_key(row)?,
                        false => row,
                    };
                    let key = self.keys.key(row.doc(), row.facts())?;
                    sorter.add(key, row)?;
                }
                Step::NeedYield => return Ok(false),
                Step::Eof => return Ok(true),
            }
        }
    }
}

impl Running for Sorting {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Fresh => {
                    let limit = self.limit.and_then(|n| usize::try_from(n).ok());
                    self.state = State::Filling(Sorter::new(limit, up.ctx().memory.sort, self.spill.clone()));
                }
                State::Filling(mut sorter) => {
                    if !self.fill(&mut sorter, up)? {
                        self.state = State::Filling(sorter);
                        return Ok(Step::NeedYield);
                    }
                    let rows = sorter.finish()?;
                    self.stats = rows.stats;
                    self.state = State::Draining(rows);
                }
                State::Draining(mut rows) => {
                    return Ok(match rows.next_row()? {
                        Some((_, row)) => {
                            self.state = State::Draining(rows);
                            Step::Row(row)
                        }
                        None => Step::Eof,
                    });
                }
                State::Done => return Ok(Step::Eof),
            }
        }
    }
    fn held_bytes(&self) -> usize {
        match &self.state {
            State::Filling(sorter) => sorter.held_bytes(),
            State::Draining(rows) => rows.held_bytes(),
            State::Fresh | State::Done => 0,
        }
    }
    fn held(&self) -> Option<Held> {
        Some(Held::rows(self.stats))
    }
}
