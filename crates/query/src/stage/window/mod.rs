//! `$setWindowFields`: fields computed over the documents around each one.
//!
//! ```text
//! input ─► sorted by partition and sortBy ─► one partition in memory or in a file ─► per document: every function's value
//! ```
//!
//! One function per file; [`spec`] parses, [`bounds`] says which neighbours a window holds.

mod accumulate;
mod bounds;
mod covariance;
mod derivative;
mod exp_moving_avg;
mod first_last;
mod integral;
mod linear_fill;
mod locf;
mod min_max;
mod partition;
mod rank;
mod shift;
mod spec;
mod std_dev;
mod store;
mod sum;

pub(super) use spec::parse;

use super::match_forward::same_root;
use super::unwind::write_with;
use super::{Needs, Origin, Row, RunEnv, Stage, Step, Upstream};
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, FieldPath, Val};
use crate::sort::{SortKeys, SortPattern, SortedRows, Sorter, SpillSpace};
use bytes::Bytes;
use pando_base::limits::{SORT_MEMORY_BYTES_MAX, WINDOW_STEPS_PER_TURN};
use pando_base::{Error, Result, patience};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuilder, Value};
use partition::Partition;
use std::sync::Arc;
use store::Store;

/// One window function over the documents of a partition, asked for each of them in order.
trait Function: Send {
    /// A new partition begins.
    fn begin(&mut self, _p: &Partition, _ctx: &QueryCtx) -> Result<()> {
        Ok(())
    }
    /// The value for document `at`, and how many documents were looked at.
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)>;
    fn optimize(&mut self, _ctx: &QueryCtx) -> Result<()> {
        Ok(())
    }
}

struct Output {
    path: FieldPath,
    function: Box<dyn Function>,
}

struct WindowFields {
    partition_by: Option<Expr>,
    sort: Option<SortKeys>,
    /// The path of a sort by one field.
    sort_path: Option<FieldPath>,
    outputs: Vec<Output>,
    spill: Option<Arc<dyn SpillSpace>>,
    state: State,
}

enum State {
    Fresh,
    Filling(Sorter<Bytes>),
    /// Between partitions: the rest, and the first row of the next with its partition key.
    Between(SortedRows<Bytes>, Option<(Box<[u8]>, Bytes)>),
    Giving(SortedRows<Bytes>, Option<(Box<[u8]>, Bytes)>, Partition, usize),
    Done,
}

/// Bytes of a document that are copied in one step.
const BYTES_PER_STEP: usize = 1024;

impl WindowFields {
    /// The key bytes of the partition that a document is in. Arrays are refused when it is that partition's turn.
    fn partition_key(&self, row: &Row, ctx: &QueryCtx, check: bool) -> Result<Vec<u8>> {
        let Some(e) = &self.partition_by else { return Ok(Vec::new()) };
        let v = e.eval_doc(row.doc(), ctx)?;
        let v = v.value().unwrap_or(Value::Null);
        if check && matches!(v, Value::Array(_)) {
            return Err(Error::type_mismatch(
                "An expression used to partition cannot evaluate to value of type array",
            ));
        }
        let mut key = KeyBuilder::default();
        key.append_with(v, Collation::order(&ctx.collation));
        Ok(key.finish())
    }

    fn fill(&mut self, sorter: &mut Sorter<Bytes>, up: &mut Upstream<'_>) -> Result<bool> {
        loop {
            match up.next()? {
                Step::Row(row) => {
                    let mut key = self.partition_key(&row, up.ctx(), false)?;
                    if let Some(keys) = &mut self.sort {
                        key.extend_from_slice(keys.key(row.doc(), row.facts())?);
                    }
                    sorter.add(&key, row.into_bytes())?;
                }
                Step::NeedYield => return Ok(false),
                Step::Eof => return Ok(true),
            }
        }
    }

    /// Takes the rows of one partition.
    fn gather(
        &mut self,
        rows: &mut SortedRows<Bytes>,
        ahead: &mut Option<(Box<[u8]>, Bytes)>,
        ctx: &QueryCtx,
    ) -> Result<Option<Partition>> {
        let Some((key, first)) = ahead.take() else { return Ok(None) };
        let mut all = Store::new(self.spill.clone());
        all.push(Row::new(first))?;
        while let Some((_, row)) = rows.next_row()? {
            let row = Row::new(row);
            let own = self.partition_key(&row, ctx, true)?;
            if *own != *key {
                *ahead = Some((own.into(), row.into_bytes()));
                break;
            }
            patience::spend(1 + row.bytes().len() / BYTES_PER_STEP)?;
            all.push(row)?;
        }
        let partition = Partition::new(all, self.sort_path.clone());
        for output in &mut self.outputs {
            output.function.begin(&partition, ctx)?;
        }
        Ok(Some(partition))
    }

    fn give(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Row, usize)> {
        let mut row = p.row(at)?;
        let mut steps = 0;
        for output in &mut self.outputs {
            let (v, looked) = output.function.value(p, at, ctx)?;
            steps += looked;
            let mut holder = DocBuilder::new();
            v.put_to(&mut holder, "");
            let holder = holder.finish();
            let mut b = DocBuilder::with_capacity(row.doc().byte_len() + holder.byte_len() + 32);
            let value = holder.first().map(|e| (e.ty, e.data()));
            write_with(row.doc(), output.path.parts(), value, &mut b);
            row = b.finish().into();
        }
        Ok((row, steps))
    }

    fn first_row(&self, rows: &mut SortedRows<Bytes>, ctx: &QueryCtx) -> Result<Option<(Box<[u8]>, Bytes)>> {
        match rows.next_row()? {
            None => Ok(None),
            Some((_, row)) => {
                let row = Row::new(row);
                Ok(Some((self.partition_key(&row, ctx, true)?.into(), row.into_bytes())))
            }
        }
    }
}

impl Stage for WindowFields {
    fn start(&mut self, env: &RunEnv) -> Result<()> {
        self.spill = env.spill.clone();
        Ok(())
    }
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        let mut steps = 0;
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Fresh => {
                    let sorter = Sorter::new(None, SORT_MEMORY_BYTES_MAX, self.spill.clone());
                    self.state = State::Filling(sorter);
                }
                State::Filling(mut sorter) => {
                    if !self.fill(&mut sorter, up)? {
                        self.state = State::Filling(sorter);
                        return Ok(Step::NeedYield);
                    }
                    let mut rows = sorter.finish()?;
                    let ahead = self.first_row(&mut rows, up.ctx())?;
                    self.state = State::Between(rows, ahead);
                }
                State::Between(mut rows, mut ahead) => {
                    let Some(p) = self.gather(&mut rows, &mut ahead, up.ctx())? else { return Ok(Step::Eof) };
                    self.state = State::Giving(rows, ahead, p, 0);
                    // Gathering may have taken a while.
                    if steps > 0 {
                        return Ok(Step::NeedYield);
                    }
                }
                State::Giving(rows, ahead, p, at) if at == p.len() => {
                    self.state = State::Between(rows, ahead);
                    steps += 1;
                }
                State::Giving(rows, ahead, mut p, at) => {
                    if p.steps > WINDOW_STEPS_PER_TURN {
                        p.steps = 0;
                        self.state = State::Giving(rows, ahead, p, at);
                        return Ok(Step::NeedYield);
                    }
                    let (row, looked) = self.give(&p, at, up.ctx())?;
                    p.steps += looked;
                    self.state = State::Giving(rows, ahead, p, at + 1);
                    return Ok(Step::Row(row));
                }
                State::Done => return Ok(Step::Eof),
            }
        }
    }
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        if let Some(e) = &mut self.partition_by {
            e.optimize(ctx)?;
        }
        self.outputs.iter_mut().try_for_each(|o| o.function.optimize(ctx))
    }
    /// Whole partitions go, or none of their documents.
    fn origin(&self, path: &str) -> Option<Origin> {
        let Some(Expr::Field(by)) = &self.partition_by else { return None };
        let untouched = self.outputs.iter().all(|o| !same_root(&o.path.dotted(), path));
        let within = by.renamed(None)? == path.split('.').next()?;
        (untouched && within).then(|| Origin { path: path.to_owned(), same: false })
    }
    fn needs(&self, needs: &mut Needs) {
        needs.whole();
    }
}

/// The stage for parsed parts.
fn stage(
    partition_by: Option<Expr>,
    sort: Option<SortPattern>,
    outputs: Vec<Output>,
    ctx: &QueryCtx,
) -> Result<Box<dyn Stage>> {
    let sort_path = match sort.as_ref().map(|s| s.parts.as_slice()) {
        Some([part]) => Some(FieldPath::parse(&part.path)?),
        _ => None,
    };
    let sort = sort.map(|s| SortKeys::new(Arc::new(s), ctx.collation.clone()));
    Ok(Box::new(WindowFields { partition_by, sort, sort_path, outputs, spill: None, state: State::Fresh }))
}
