//! `$sort`: blocks, keeps only the top when a `$limit` follows, spills when it may.

use super::{FindPart, Held, Needs, Row, RunEnv, Stage, Step, Upstream};
use crate::ctx::QueryCtx;
use crate::expr::ParseCtx;
use crate::facts::Facts;
use crate::sort::{Payload, SortKeys, SortPattern, SortStats, SortedRows, Sorter, SpillSpace};
use bytes::Bytes;
use pando_base::limits::SORT_MEMORY_BYTES_MAX;
use pando_base::{Error, Result};
use pando_bson::{Elem, Value};
use std::sync::Arc;

struct Sort {
    pattern: Arc<SortPattern>,
    keys: SortKeys,
    limit: Option<u64>,
    /// Rows go on with their keys.
    keep_key: bool,
    spill: Option<Arc<dyn SpillSpace>>,
    stats: SortStats,
    state: State,
}

/// What a `$sort` that nobody asks for keys is to do.
pub(crate) struct SortAsked {
    pub(super) pattern: Arc<SortPattern>,
    pub(super) limit: Option<u64>,
}

enum State {
    Fresh,
    Filling(Sorter<Row>),
    Draining(SortedRows<Row>),
    Done,
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>, out: &mut Vec<Box<dyn Stage>>) -> Result<()> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(15973, "the $sort key specification must be an object"));
    };
    if spec.is_empty() {
        return Err(Error::location(15976, "$sort stage must have at least one sort key"));
    }
    let pattern = SortPattern::parse(spec)?;
    p.metas.extend(pattern.metas());
    out.push(sort(pattern, p.ctx));
    Ok(())
}

pub(super) fn sort(pattern: SortPattern, ctx: &QueryCtx) -> Box<dyn Stage> {
    let pattern = Arc::new(pattern);
    let keys = SortKeys::new(pattern.clone(), ctx.collation.clone());
    Box::new(Sort {
        pattern,
        keys,
        limit: None,
        keep_key: false,
        spill: None,
        stats: SortStats::default(),
        state: State::Fresh,
    })
}

impl Payload for Row {
    fn byte_len(&self) -> usize {
        self.bytes().len() + self.facts().map_or(0, Facts::byte_len)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        Facts::encode(self.facts(), out);
        out.extend_from_slice(self.bytes());
    }
    fn decode(mut bytes: &[u8]) -> Result<Row> {
        let facts = Facts::decode(&mut bytes)?;
        Ok(Row::new(Bytes::copy_from_slice(bytes)).with_facts(facts))
    }
}

impl Sort {
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

impl Stage for Sort {
    fn may_nest(&self) -> bool {
        false
    }
    fn start(&mut self, env: &RunEnv) -> Result<()> {
        self.spill = env.spill.clone();
        Ok(())
    }
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Fresh => {
                    let limit = self.limit.and_then(|n| usize::try_from(n).ok());
                    self.state =
                        State::Filling(Sorter::new(limit, SORT_MEMORY_BYTES_MAX, self.spill.clone()));
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
    fn needs(&self, needs: &mut Needs) {
        for part in self.pattern.parts.iter().filter(|p| p.meta.is_none()) {
            needs.add(&part.path);
        }
    }
    fn push_down(&mut self, find: &mut FindPart) -> bool {
        // A later sort replaces an earlier one only when nothing was cut off in between.
        if self.keep_key || find.sort.is_some() || find.skip > 0 || find.limit.is_some() {
            return false;
        }
        find.sort = Some(self.pattern.clone());
        true
    }
    fn leaves_alone(&self, _: &str) -> bool {
        true
    }
    fn sort_pattern(&self) -> Option<&SortPattern> {
        Some(&self.pattern)
    }
    fn keep_sort_key(&mut self) {
        self.keep_key = true;
    }
    fn as_sort(&self) -> Option<SortAsked> {
        (!self.keep_key).then(|| SortAsked { pattern: self.pattern.clone(), limit: self.limit })
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
    fn absorb_limit(&mut self, limit: u64) {
        self.limit = Some(limit);
    }
}
