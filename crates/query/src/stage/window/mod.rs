//! `$setWindowFields`: fields computed over the documents around each one.
//!
//! ```text
//! input ─► [$sort] by partition and sortBy ─► one partition in memory or in a file ─► per document: every function's value
//! ```
//!
//! The sort is a stage of its own in front, which may become an index; what is partitioned by more than a field is sorted
//! in here. One function per file; [`spec`] parses, [`bounds`] says which neighbours a window holds.

mod accumulate;
mod asked;
mod bounds;
mod covariance;
mod derivative;
mod exp_moving_avg;
mod first_last;
mod function;
mod integral;
mod linear_fill;
mod locf;
mod min_max;
mod partition;
mod place;
mod rank;
mod shift;
mod spec;
mod std_dev;
mod store;
mod sum;
#[cfg(test)]
mod tests;

pub(crate) use spec::names;
pub(super) use spec::parse;

use super::held::Held;
use super::needs::Needs;
use super::parsed::{Compiled, Origin, Parsed};
use super::paths::same_root;
use super::row::Row;
use super::running::{Running, Start};
use super::sort::Sort;
use super::step::Step;
use super::upstream::Upstream;
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::expr::{Expr, FieldPath};
use crate::sort::{SortKeys, SortPattern, SortedRows, Sorter, SpillSpace, parallel_arrays};
use asked::Asked;
use function::Function;
use pando_base::limits::WINDOW_STEPS_PER_TURN;
use pando_base::{Error, Result, patience};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuilder, Value};
use partition::Partition;
use place::{Placed, write_all};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::Store;

/// A field and what it is to be.
#[derive(Clone, PartialEq)]
struct Output {
    path: FieldPath,
    function: Compiled<Asked>,
}

/// Documents with fields about those around them.
#[derive(Clone, PartialEq)]
pub(crate) struct WindowFields {
    partition_by: Compiled<Option<Expr>>,
    sort: Option<Arc<SortPattern>>,
    /// The path of a sort by one field.
    sort_path: Option<FieldPath>,
    outputs: Vec<Output>,
    /// Fields that somebody looks at.
    pub(super) keep: Option<BTreeSet<String>>,
}

struct Windowing {
    partition_by: Option<Expr>,
    /// What the documents of a partition are sorted by in here, with their partition.
    sort: Option<SortKeys>,
    /// Documents come in order.
    sorted: bool,
    sort_path: Option<FieldPath>,
    outputs: Vec<(FieldPath, Box<dyn Function>)>,
    /// How many documents behind its own are looked at for one that is given out; `None` when that is not known ahead.
    ahead: Option<usize>,
    keep: Option<BTreeSet<String>>,
    spill: Option<Arc<dyn SpillSpace>>,
    /// Of the largest partition: its bytes, and whether some partition went to disk.
    used: (usize, bool),
    state: State,
}

enum State {
    Fresh,
    Filling(Sorter<Row>),
    Gathering(Box<Gathering>),
    Giving(Box<Gathering>, Partition, usize),
    Done,
}

/// A partition that documents are taken in for.
struct Gathering {
    /// Otherwise they come from the stage before.
    sorted: Option<SortedRows<Row>>,
    key: Option<Vec<u8>>,
    rows: Store,
    /// The first document of the next partition, and its key.
    ahead: Option<(Vec<u8>, Row)>,
    /// What was wrong with the document behind those of this partition, told when somebody asks for one that it is looked at for.
    failed: Option<Error>,
}

impl Gathering {
    fn held_bytes(&self) -> usize {
        self.rows.used().0 + self.sorted.as_ref().map_or(0, SortedRows::held_bytes)
    }
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        match &mut self.sorted {
            Some(rows) => Ok(rows.next_row()?.map_or(Step::Eof, |(_, row)| Step::Row(row))),
            None => up.next(),
        }
    }
}

enum Keyed {
    Row(Vec<u8>, Row),
    NeedYield,
    Eof,
}

/// Bytes of a document that are copied in one step.
const BYTES_PER_STEP: usize = 1024;

impl WindowFields {
    fn new(
        partition_by: Option<Expr>,
        sort: Option<SortPattern>,
        outputs: Vec<Output>,
    ) -> Result<WindowFields> {
        let sort_path = match sort.as_ref().map(|s| s.parts.as_slice()) {
            Some([part]) if part.meta.is_none() => Some(FieldPath::parse(&part.path)?),
            _ => None,
        };
        let (partition_by, sort) = (Compiled(partition_by), sort.map(Arc::new));
        Ok(WindowFields { partition_by, sort, sort_path, outputs, keep: None })
    }
    /// Its documents have to come in order: what they are partitioned by is a field, or they are not.
    fn comes_sorted(&self) -> bool {
        match &*self.partition_by {
            Some(Expr::Field(path)) if !path.is_whole() => true,
            Some(e) => e.as_const().is_some(),
            None => true,
        }
    }
    /// The order that documents have to come in, if any.
    pub(super) fn order(&self) -> Result<Option<Sort>> {
        if !self.comes_sorted() {
            return Ok(None);
        }
        let mut order = DocBuilder::new();
        if let Some(Expr::Field(path)) = &*self.partition_by {
            order.i32(&path.dotted(), 1);
        }
        self.sort.iter().flat_map(|s| s.spec.iter()).for_each(|e| {
            order.elem(e);
        });
        let order = order.finish();
        match order.is_empty() {
            true => Ok(None),
            false => SortPattern::parse(&order).map(|pattern| Some(Sort::by(pattern))),
        }
    }
}

impl Parsed for WindowFields {
    fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        let sorted = self.comes_sorted();
        let keys = |sort| SortKeys::new(sort, run.ctx.collation.clone());
        Ok(Box::new(Windowing {
            sorted,
            sort: self.sort.filter(|_| !sorted).map(keys),
            partition_by: self.partition_by.0,
            sort_path: self.sort_path,
            // The next one is, for the end of the partition.
            ahead: self.outputs.iter().try_fold(1, |most, o| Some(o.function.ahead()?.max(most))),
            outputs: self.outputs.into_iter().map(|o| (o.path, o.function.0.start())).collect(),
            keep: self.keep,
            spill: run.spill(),
            used: (0, false),
            state: State::Fresh,
        }))
    }
    fn needs(&self, needs: &mut Needs) {
        let mut complete = self.partition_by.as_ref().is_none_or(|e| e.dependencies(needs.paths()));
        for output in &self.outputs {
            complete &= output.function.needs(needs.paths());
            // A path is written into what is there.
            if let [root, _, ..] = output.path.parts() {
                needs.add(root);
            }
        }
        if !complete {
            needs.whole();
        }
        let sorted = self.sort.iter().filter(|_| !self.comes_sorted()).flat_map(|s| &s.parts);
        sorted.filter(|p| p.meta.is_none()).for_each(|p| needs.add(&p.path));
        self.sort_path.iter().for_each(|p| needs.add(&p.dotted()));
    }
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        if let Some(e) = &mut *self.partition_by {
            e.optimize(ctx)?;
        }
        self.outputs.iter_mut().try_for_each(|o| o.function.optimize(ctx))
    }
    /// Whole partitions go, or none of their documents.
    fn origin(&self, path: &str) -> Option<Origin> {
        let Some(Expr::Field(by)) = &*self.partition_by else { return None };
        let untouched = self.outputs.iter().all(|o| !same_root(&o.path.dotted(), path));
        let within = by.renamed(None)? == path.split('.').next()?;
        (untouched && within).then(|| Origin { path: path.to_owned(), same: false })
    }
}

impl Windowing {
    fn prepare(&mut self, ctx: &QueryCtx) -> Result<()> {
        self.outputs.iter_mut().try_for_each(|(_, function)| function.prepare(ctx))
    }
    /// The key bytes of the partition that a document is in. Arrays are refused when it is that partition's turn, and while
    /// documents are sorted only where there is another one to sort by.
    fn partition_key(&self, row: &Row, ctx: &QueryCtx, sorting: bool) -> Result<Vec<u8>> {
        let Some(e) = &self.partition_by else { return Ok(Vec::new()) };
        let v = e.eval_doc(row.doc(), ctx)?;
        let v = v.value().unwrap_or(Value::Null);
        match (matches!(v, Value::Array(_)), &self.sort) {
            (true, _) if !sorting => {
                return Err(Error::type_mismatch(
                    "An expression used to partition cannot evaluate to value of type array",
                ));
            }
            (true, Some(sort)) if sort.meets_arrays(row.doc()) => return Err(parallel_arrays()),
            _ => {}
        }
        // As it is sorted: by its least element.
        let v = match v {
            Value::Array(a) if sorting => {
                a.iter().map(|e| e.value()).min_by(|a, b| ctx.compare(*a, *b)).unwrap_or(Value::Undefined)
            }
            v => v,
        };
        let mut key = KeyBuilder::default();
        key.append_with(v, Collation::order(&ctx.collation));
        Ok(key.finish())
    }

    fn fill(&mut self, sorter: &mut Sorter<Row>, up: &mut Upstream<'_>) -> Result<bool> {
        loop {
            match up.next()? {
                Step::Row(row) => {
                    let mut key = self.partition_key(&row, up.ctx(), true)?;
                    if let Some(keys) = &mut self.sort {
                        key.extend_from_slice(keys.key(row.doc(), row.facts())?);
                    }
                    sorter.add(&key, row.narrowed(self.keep.as_ref()))?;
                }
                Step::NeedYield => return Ok(false),
                Step::Eof => return Ok(true),
            }
        }
    }

    /// The next document and the key of its partition.
    fn keyed(&self, g: &mut Gathering, up: &mut Upstream<'_>) -> Result<Keyed> {
        Ok(match g.next(up)? {
            Step::Row(row) => Keyed::Row(self.partition_key(&row, up.ctx(), false)?, row),
            Step::NeedYield => Keyed::NeedYield,
            Step::Eof => Keyed::Eof,
        })
    }

    /// Takes the documents of one partition in; false when it has to yield first.
    fn gather(&self, g: &mut Gathering, up: &mut Upstream<'_>) -> Result<bool> {
        loop {
            let (key, row) = match g.ahead.take() {
                Some(ahead) => ahead,
                None => match self.keyed(g, up) {
                    Ok(Keyed::Row(key, row)) => (key, row),
                    Ok(Keyed::NeedYield) => return Ok(false),
                    Ok(Keyed::Eof) => return Ok(true),
                    Err(e) if !e.code.ends_command() && self.ahead.is_some_and(|n| n < g.rows.len()) => {
                        g.failed = Some(e);
                        return Ok(true);
                    }
                    Err(e) => return Err(e),
                },
            };
            if g.key.as_ref().is_some_and(|own| *own != key) {
                g.ahead = Some((key, row));
                return Ok(true);
            }
            g.key = Some(key);
            patience::spend(1 + row.bytes().len() / BYTES_PER_STEP)?;
            g.rows.push(row.narrowed(self.keep.as_ref()))?;
        }
    }

    /// The partition that was gathered; `None` at the end.
    fn partition(&mut self, g: &mut Gathering, ctx: &QueryCtx) -> Result<Option<Partition>> {
        let rows = std::mem::replace(&mut g.rows, Store::new(self.spill.clone(), ctx.memory.window));
        if rows.len() == 0 {
            return Ok(None);
        }
        g.key = None;
        let (bytes, on_disk) = rows.used();
        self.used = (self.used.0.max(bytes), self.used.1 || on_disk);
        let partition = Partition::new(rows, self.sort_path.clone());
        for (_, function) in &mut self.outputs {
            function.begin(&partition, ctx)?;
        }
        Ok(Some(partition))
    }

    fn gathering(&self, sorted: Option<SortedRows<Row>>, ctx: &QueryCtx) -> State {
        let rows = Store::new(self.spill.clone(), ctx.memory.window);
        State::Gathering(Box::new(Gathering { sorted, key: None, rows, ahead: None, failed: None }))
    }

    /// How many documents of a partition can be given out.
    fn given_out(&self, g: &Gathering, p: &Partition) -> usize {
        match g.failed {
            Some(_) => p.len().saturating_sub(self.ahead.unwrap_or(usize::MAX)),
            None => p.len(),
        }
    }

    fn give(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Row, usize)> {
        let row = p.row(at)?;
        let (mut steps, mut holders) = (0, Vec::with_capacity(self.outputs.len()));
        for (_, function) in &mut self.outputs {
            let (v, looked) = function.value(p, at, ctx)?;
            steps += looked;
            let mut holder = DocBuilder::new();
            v.put_to(&mut holder, "");
            holders.push(holder.finish());
        }
        let bytes: usize = holders.iter().map(|h| h.byte_len() + 32).sum();
        let mut b = DocBuilder::with_capacity(row.doc().byte_len() + bytes);
        let value = |at: usize| holders[at].first().map(|e| (e.ty, e.data()));
        let placed: Vec<Placed<'_>> =
            self.outputs.iter().enumerate().map(|(at, (path, _))| (path.parts(), value(at))).collect();
        write_all(row.doc(), &placed, &mut b)?;
        let row = row.becomes(b.finish().into());
        Ok((row, steps))
    }
}

impl Running for Windowing {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        let mut steps = 0;
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Fresh if self.sorted => {
                    self.prepare(up.ctx())?;
                    self.state = self.gathering(None, up.ctx());
                }
                State::Fresh => {
                    self.prepare(up.ctx())?;
                    let sorter = Sorter::new(None, up.ctx().memory.sort, self.spill.clone());
                    self.state = State::Filling(sorter);
                }
                State::Filling(mut sorter) => {
                    if !self.fill(&mut sorter, up)? {
                        self.state = State::Filling(sorter);
                        return Ok(Step::NeedYield);
                    }
                    self.state = self.gathering(Some(sorter.finish()?), up.ctx());
                }
                State::Gathering(mut g) => {
                    if !self.gather(&mut g, up)? {
                        self.state = State::Gathering(g);
                        return Ok(Step::NeedYield);
                    }
                    let Some(p) = self.partition(&mut g, up.ctx())? else { return Ok(Step::Eof) };
                    self.state = State::Giving(g, p, 0);
                    // Gathering may have taken a while.
                    if steps > 0 {
                        return Ok(Step::NeedYield);
                    }
                }
                State::Giving(mut g, p, at) if at == self.given_out(&g, &p) => {
                    if let Some(e) = g.failed.take() {
                        return Err(e);
                    }
                    self.state = State::Gathering(g);
                    steps += 1;
                }
                State::Giving(g, mut p, at) => {
                    if p.steps > WINDOW_STEPS_PER_TURN {
                        p.steps = 0;
                        self.state = State::Giving(g, p, at);
                        return Ok(Step::NeedYield);
                    }
                    let (row, looked) = self.give(&p, at, up.ctx())?;
                    p.steps += looked;
                    self.state = State::Giving(g, p, at + 1);
                    return Ok(Step::Row(row));
                }
                State::Done => return Ok(Step::Eof),
            }
        }
    }
    fn held_bytes(&self) -> usize {
        match &self.state {
            State::Filling(sorter) => sorter.held_bytes(),
            State::Gathering(g) => g.held_bytes(),
            // The partition that is being given out is no larger than the largest one.
            State::Giving(g, ..) => g.held_bytes() + self.used.0,
            State::Fresh | State::Done => 0,
        }
    }
    fn held(&self) -> Option<Held> {
        Some(Held::Partition { bytes: self.used.0 as u64, on_disk: self.used.1 })
    }
}
