//! `$sort`: blocks, keeps only the top when a `$limit` follows, spills when it may.

use super::{FindPart, Needs, Row, RunEnv, Stage, Step, Upstream};
use crate::ctx::QueryCtx;
use crate::expr::ParseCtx;
use crate::sort::{SortKeys, SortPattern, SortedRows, Sorter, SpillSpace};
use bytes::Bytes;
use pando_base::limits::SORT_MEMORY_BYTES_MAX;
use pando_base::{Error, Result};
use pando_bson::{Elem, Value};
use std::sync::Arc;

struct Sort {
    pattern: Arc<SortPattern>,
    keys: SortKeys,
    limit: Option<u64>,
    spill: Option<Arc<dyn SpillSpace>>,
    state: State,
}

enum State {
    Fresh,
    Filling(Sorter<Bytes>),
    Draining(SortedRows<Bytes>),
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
    if pattern.needs_meta() {
        return Err(Error::location(40218, "query requires text score metadata, but it is not available"));
    }
    out.push(sort(pattern, p.ctx));
    Ok(())
}

pub(super) fn sort(pattern: SortPattern, ctx: &QueryCtx) -> Box<dyn Stage> {
    let pattern = Arc::new(pattern);
    let keys = SortKeys::new(pattern.clone(), ctx.collation.clone());
    Box::new(Sort { pattern, keys, limit: None, spill: None, state: State::Fresh })
}

impl Sort {
    fn fill(&mut self, sorter: &mut Sorter<Bytes>, up: &mut Upstream<'_>) -> Result<bool> {
        loop {
            match up.next()? {
                Step::Row(row) => {
                    let key = self.keys.key(row.doc(), &|_| 0.0)?;
                    sorter.add(key, row.into_bytes())?;
                }
                Step::NeedYield => return Ok(false),
                Step::Eof => return Ok(true),
            }
        }
    }
}

impl Stage for Sort {
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
                    self.state = State::Draining(sorter.finish()?);
                }
                State::Draining(mut rows) => {
                    return Ok(match rows.next_row()? {
                        Some((_, doc)) => {
                            self.state = State::Draining(rows);
                            Step::Row(Row::new(doc))
                        }
                        None => Step::Eof,
                    });
                }
                State::Done => return Ok(Step::Eof),
            }
        }
    }
    fn needs(&self, needs: &mut Needs) {
        for part in &self.pattern.parts {
            needs.add(&part.path);
        }
    }
    fn push_down(&mut self, find: &mut FindPart) -> bool {
        // A later sort replaces an earlier one only when nothing was cut off in between.
        if find.sort.is_some() || find.skip > 0 || find.limit.is_some() {
            return false;
        }
        find.sort = Some(self.pattern.clone());
        true
    }
    fn leaves_alone(&self, _: &str) -> bool {
        true
    }
    fn absorb_limit(&mut self, limit: u64) {
        self.limit = Some(limit);
    }
}
