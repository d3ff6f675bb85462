//! `$group`.
//!
//! Documents are grouped by the key bytes of their `_id` (so 1 and 1.0 meet, and a collation's equal strings do);
//! the group keeps the first `_id` as it was. What does not fit in memory leaves in sorted partial results that are
//! merged at the end.

use super::group_table::{GROUP_OVERHEAD_BYTES, GroupTable};
use super::held::Held;
use super::needs::Needs;
use super::parsed::{Compiled, Origin, Parsed};
use super::row::Row;
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::accumulator::{self, AccSpec, Accumulator};
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::doc_size::check_size;
use crate::exec::Fed;
use crate::expr::{Expr, ParseCtx, Scope, Val};
use crate::names::NamedList;
use crate::plan::{Firsts, Pick};
use crate::sort::{SortedRows, Sorter, SpillSpace};
use bytes::Bytes;
use pando_base::{Error, ErrorCode, Result, patience};
use pando_bson::keystring::{Directions, KeyBuilder};
use pando_bson::{DocBuilder, Elem, RawDoc, Value};
use std::sync::Arc;

/// A document for each group of documents.
#[derive(Clone, PartialEq)]
pub(crate) struct Group {
    id: Compiled<GroupId>,
    accs: Compiled<Vec<AccSpec>>,
    /// Somebody asks what is known of rows: their bytes alone do not do.
    pub(super) reads_facts: bool,
    pub(super) phase: Phase,
}

/// Which part of the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Whole,
    /// States of accumulators are given out, for somebody who merges them.
    Partial,
    /// Such states come in.
    Merging,
}

impl Phase {
    /// The option that a forwarded stage has.
    pub(super) fn option(self) -> Option<&'static str> {
        match self {
            Phase::Whole => None,
            Phase::Partial => Some("$willBeMerged"),
            Phase::Merging => Some("$doingMerge"),
        }
    }
    /// The phase that an option tells.
    fn of(option: &str) -> Option<Phase> {
        [Phase::Partial, Phase::Merging].into_iter().find(|p| p.option() == Some(option))
    }
}

/// What a `$group` looks at.
pub(super) struct Extremes {
    /// Its `_id` is made of these.
    pub(super) by: Vec<String>,
    /// Paths whose least or greatest value it gives.
    pub(super) of: Vec<String>,
}

struct Grouping {
    id: GroupId,
    accs: Vec<AccSpec>,
    reads_facts: bool,
    phase: Phase,
    spill: Option<Arc<dyn SpillSpace>>,
    used: Used,
    state: State,
}

/// What was held at most.
#[derive(Default)]
struct Used {
    accumulators: Vec<u64>,
    bytes: u64,
    spills: u64,
}

impl Used {
    fn note(&mut self, f: &Filling, spills: u64) {
        self.accumulators.resize(f.acc_bytes.len().max(self.accumulators.len()), 0);
        for (most, now) in self.accumulators.iter_mut().zip(&f.acc_bytes) {
            *most = (*most).max(*now as u64);
        }
        self.bytes = self.bytes.max(f.bytes as u64);
        self.spills += spills;
    }
}

#[derive(Clone)]
enum GroupId {
    One(Expr),
    /// An object of expressions. What is missing becomes null if there is just one, and is left out among several.
    Fields(NamedList<Expr>),
}

enum State {
    Fresh,
    Filling(Box<Filling>),
    /// All groups in memory; the next one to give.
    Memory(Box<Filling>, usize),
    /// Partial results by key; one row read ahead.
    Merging(SortedRows<Bytes>, Option<(Box<[u8]>, Bytes)>),
    Done,
}

struct Filling {
    table: GroupTable,
    key: KeyBuilder,
    ids: Vec<Val<'static>>,
    /// Accumulators of group `g` at `g * n ..`.
    accs: Vec<Box<dyn Accumulator>>,
    bytes: usize,
    /// Of each accumulator in all groups.
    acc_bytes: Vec<usize>,
    sorter: Option<Sorter<Bytes>>,
}

/// Memory of one accumulator beside what it reports.
const ACCUMULATOR_BYTES: usize = 96;
/// Sorting partial results may take this part of the memory.
const SPILL_SORT_SHARE: usize = 4;

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Group> {
    let Value::Document(spec) = e.value() else {
        return Err(Error::location(15947, "a group's fields must be specified in an object"));
    };
    let (mut id, mut phase) = (None, Phase::Whole);
    let mut accs: Vec<AccSpec> = Vec::new();
    for f in spec {
        let name = f.path()?;
        if name == "_id" {
            if id.is_some() {
                return Err(Error::location(15948, "a group's _id may only be specified once"));
            }
            id = Some(parse_id(f.value(), p)?);
            continue;
        }
        if let Some(found) = Phase::of(name).filter(|_| p.forwarded) {
            phase = found;
            continue;
        }
        if name == "$doingMerge" {
            return Err(Error::location(17030, "$doingMerge should be true if present"));
        }
        if name.contains('.') {
            return Err(Error::location(40235, format!("The field name '{name}' cannot contain '.'")));
        }
        let Value::Document(acc) = f.value() else {
            return Err(Error::location(40234, format!("The field '{name}' must be an accumulator object")));
        };
        if name.starts_with('$') {
            return Err(Error::location(
                40236,
                format!("The field name '{name}' cannot be an operator name"),
            ));
        }
        accs.push(accumulator::parse(name, acc, p)?);
    }
    let id = id.ok_or_else(|| Error::location(15955, "a group specification must include an _id"))?;
    Ok(Group { id: Compiled(id), accs: Compiled(accs), reads_facts: false, phase })
}

fn parse_id(v: Value<'_>, p: &mut ParseCtx<'_>) -> Result<GroupId> {
    let Value::Document(d) = v else { return Ok(GroupId::One(p.parse(v)?)) };
    if d.is_empty() || d.first().is_some_and(|e| e.name_bytes().starts_with(b"$")) {
        return Ok(GroupId::One(p.object(d)?));
    }
    for e in d {
        if e.value().is_number() || matches!(e.value(), Value::Boolean(_)) {
            return Err(Error::location(17390, "$group does not support inclusion-style expressions"));
        }
    }
    match p.object(d)? {
        Expr::Object(fields) => Ok(GroupId::Fields(fields.into())),
        e => Ok(GroupId::One(e)),
    }
}

impl GroupId {
    fn eval<'s>(&'s self, scope: &Scope<'s>) -> Result<Val<'s>> {
        match self {
            GroupId::One(e) => {
                let v = e.eval(scope)?;
                Ok(if v.is_missing() { Val::NULL } else { v })
            }
            GroupId::Fields(fields) => {
                let mut b = DocBuilder::new();
                for (name, e) in fields.iter() {
                    match e.eval(scope)?.value() {
                        Some(v) => b.value(name, v),
                        None if fields.len() == 1 => b.null(name),
                        None => &mut b,
                    };
                }
                Ok(Val::Doc(b.finish()))
            }
        }
    }
    fn exprs(&self) -> Vec<&Expr> {
        match self {
            GroupId::One(e) => vec![e],
            GroupId::Fields(fields) => fields.iter().map(|(_, e)| e).collect(),
        }
    }
    fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            GroupId::One(e) => vec![e],
            GroupId::Fields(fields) => fields.iter_mut().map(|(_, e)| e).collect(),
        }
    }
}

impl Group {
    pub(super) fn in_phase(&self, phase: Phase) -> Group {
        Group { phase, ..self.clone() }
    }
    /// If it looks at one document of each group.
    pub(super) fn firsts(&self) -> Option<Firsts> {
        if self.phase == Phase::Merging {
            return None;
        }
        let GroupId::One(Expr::Field(path)) = &*self.id else { return None };
        let mut picks = self.accs.iter().map(AccSpec::pick);
        let pick = picks.next().unwrap_or(Some(Pick::Any))?;
        picks.all(|p| p == Some(pick)).then(|| Firsts { path: path.dotted(), pick })
    }
    /// If it looks at the least and greatest values of paths only.
    pub(super) fn extremes(&self) -> Option<Extremes> {
        if self.phase == Phase::Merging {
            return None;
        }
        let (mut by, mut of) = (Vec::new(), Vec::new());
        for e in self.id.exprs() {
            match (e.as_field().filter(|p| !p.is_whole()), e.as_const()) {
                (Some(path), _) => by.push(path.dotted()),
                (None, Some(_)) => {}
                (None, None) => return None,
            }
        }
        for acc in self.accs.iter() {
            of.push(acc.extreme_of()?);
        }
        Some(Extremes { by, of })
    }
}

impl Parsed for Group {
    fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(Grouping {
            id: self.id.0,
            accs: self.accs.0,
            reads_facts: self.reads_facts,
            phase: self.phase,
            spill: run.spill(),
            used: Used::default(),
            state: State::Fresh,
        }))
    }
    fn needs(&self, needs: &mut Needs) {
        if self.phase == Phase::Merging {
            return needs.whole();
        }
        let mut complete = true;
        for e in self.id.exprs() {
            complete &= e.dependencies(needs.paths());
        }
        for acc in self.accs.iter() {
            complete &= acc.needs(needs.paths());
        }
        if complete { needs.settle() } else { needs.whole() }
    }
    fn optimize(&mut self, ctx: &QueryCtx) -> Result<()> {
        for e in self.id.exprs_mut() {
            e.optimize(ctx)?;
        }
        self.accs.iter_mut().try_for_each(|a| a.optimize(ctx))
    }
    fn origin(&self, path: &str) -> Option<Origin> {
        if self.phase == Phase::Merging {
            return None;
        }
        let rest = path.strip_prefix("_id")?;
        let path = match (&*self.id, rest.strip_prefix('.')) {
            (GroupId::One(Expr::Field(from)), None) if rest.is_empty() => from.renamed(None),
            (GroupId::One(Expr::Field(from)), Some(rest)) => from.renamed(Some(rest)),
            (GroupId::Fields(fields), Some(rest)) => {
                let (name, rest) = rest.split_once('.').map_or((rest, None), |(n, r)| (n, Some(r)));
                match fields.find(name.as_bytes()).map(|at| &fields[at]) {
                    Some((_, Expr::Field(from))) => from.renamed(rest),
                    _ => None,
                }
            }
            _ => None,
        }?;
        Some(Origin { path, same: false })
    }
}

impl Filling {
    fn new(ctx: &QueryCtx) -> Filling {
        Filling {
            table: GroupTable::new(ctx.random.next_u64()),
            key: KeyBuilder::new(Directions(0)),
            ids: Vec::new(),
            accs: Vec::new(),
            bytes: 0,
            acc_bytes: Vec::new(),
            sorter: None,
        }
    }

    fn add(&mut self, scope: &Scope<'_>, id: &GroupId, specs: &mut [AccSpec]) -> Result<()> {
        let ctx = scope.ctx;
        let group = self.group(id.eval(scope)?, specs, ctx)?;
        let accs = &mut self.accs[group * specs.len()..];
        for ((spec, acc), bytes) in specs.iter_mut().zip(accs).zip(&mut self.acc_bytes) {
            let before = acc.heap_bytes();
            spec.feed(&mut **acc, scope)?;
            let more = acc.heap_bytes();
            // What a script began with was not counted, and may shrink.
            *bytes = (*bytes + more).saturating_sub(before);
            self.bytes = (self.bytes + more).saturating_sub(before);
        }
        Ok(())
    }

    /// Takes in the states of a group's accumulators: its `_id`, and then they in order.
    fn merge(&mut self, doc: &RawDoc, specs: &[AccSpec], ctx: &QueryCtx) -> Result<()> {
        let mut parts = doc.iter();
        let id = Val::option(parts.next().map(|e| e.value()));
        let group = self.group(id, specs, ctx)?;
        let accs = &mut self.accs[group * specs.len()..(group + 1) * specs.len()];
        for (((state, acc), bytes), spec) in parts.zip(accs).zip(&mut self.acc_bytes).zip(specs) {
            let before = acc.heap_bytes();
            match spec.state_of(state.value()) {
                Some(theirs) => acc.merge(Val::Ref(Value::Array(&theirs)), ctx)?,
                None => acc.merge(Val::Ref(state.value()), ctx)?,
            }
            let more = acc.heap_bytes();
            *bytes = (*bytes + more).saturating_sub(before);
            self.bytes = (self.bytes + more).saturating_sub(before);
        }
        Ok(())
    }

    /// The number of the group with this `_id`, which may be a new one.
    #[inline]
    fn group(&mut self, v: Val<'_>, specs: &[AccSpec], ctx: &QueryCtx) -> Result<usize> {
        self.key.clear();
        self.key.append_with(v.value().unwrap_or(Value::Null), Collation::order(&ctx.collation));
        // By a collation that takes long.
        patience::check()?;
        let (group, new) = self.table.find_or_add(self.key.bytes());
        if new {
            for spec in specs.iter() {
                self.accs.push(spec.start(&v, ctx)?);
            }
            let v = v.into_owned();
            self.bytes += GROUP_OVERHEAD_BYTES
                + self.key.bytes().len()
                + size_of::<Val<'static>>()
                + v.heap_bytes()
                + specs.len() * ACCUMULATOR_BYTES;
            self.ids.push(v);
            self.acc_bytes.resize(specs.len(), 0);
            self.acc_bytes.iter_mut().for_each(|n| *n += ACCUMULATOR_BYTES);
        }
        Ok(group)
    }

    /// Moves all groups out as partial results.
    fn spill(&mut self, n: usize, space: &Arc<dyn SpillSpace>, ctx: &QueryCtx) -> Result<()> {
        let sorter = self.sorter.get_or_insert_with(|| {
            Sorter::new(None, ctx.memory.group / SPILL_SORT_SHARE, Some(space.clone()))
        });
        for (group, id) in self.ids.iter().enumerate() {
            let mut b = DocBuilder::new();
            id.put_to(&mut b, "_id");
            for acc in &mut self.accs[group * n..(group + 1) * n] {
                acc.partial()?.put_to(&mut b, "p");
            }
            sorter.add(self.table.key(group), Bytes::from(b.finish().into_bytes()))?;
        }
        self.table = GroupTable::new(ctx.random.next_u64());
        self.ids = Vec::new();
        self.accs = Vec::new();
        self.bytes = 0;
        self.acc_bytes.clear();
        Ok(())
    }
}

fn too_much_memory() -> Error {
    Error::new(
        ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
        "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.",
    )
}

impl Grouping {
    /// Takes in all input; false when it has to yield first.
    fn fill(&mut self, f: &mut Filling, up: &mut Upstream<'_>) -> Result<bool> {
        let ctx = up.ctx();
        if self.phase == Phase::Merging {
            return self.fill_with_states(f, up);
        }
        let (id, accs, spill, used) = (&self.id, &mut self.accs, &self.spill, &mut self.used);
        let mut add = |scope: &Scope<'_>| {
            f.add(scope, id, accs)?;
            if f.bytes > ctx.memory.group {
                used.note(f, 1);
                let space = spill.as_ref().ok_or_else(too_much_memory)?;
                f.spill(accs.len(), space, ctx)?;
            }
            Ok(true)
        };
        if !self.reads_facts {
            return Ok(up.feed(&mut |doc| add(&Scope::new(RawDoc::trusted(doc), ctx)))? == Fed::Eof);
        }
        loop {
            match up.next()? {
                Step::Row(row) => add(&Scope::new(row.doc(), ctx).with_facts(row.facts()))?,
                Step::NeedYield => return Ok(false),
                Step::Eof => return Ok(true),
            };
        }
    }

    /// The same for the states of accumulators.
    fn fill_with_states(&mut self, f: &mut Filling, up: &mut Upstream<'_>) -> Result<bool> {
        let ctx = up.ctx();
        let (accs, spill, used) = (&self.accs, &self.spill, &mut self.used);
        let fed = up.feed(&mut |doc| {
            f.merge(RawDoc::trusted(doc), accs, ctx)?;
            if f.bytes > ctx.memory.group {
                used.note(f, 1);
                f.spill(accs.len(), spill.as_ref().ok_or_else(too_much_memory)?, ctx)?;
            }
            Ok(true)
        })?;
        Ok(fed == Fed::Eof)
    }

    fn output(&self, id: Option<Value<'_>>, accs: &mut [Box<dyn Accumulator>]) -> Result<Row> {
        let mut b = DocBuilder::new();
        b.value("_id", id.unwrap_or(Value::Null));
        for (spec, acc) in self.accs.iter().zip(accs) {
            match self.phase {
                Phase::Partial => acc.partial()?.put_to(&mut b, &spec.field),
                Phase::Whole | Phase::Merging => acc.result()?.put_to(&mut b, &spec.field),
            }
        }
        let doc = b.finish();
        check_size(&doc)?;
        Ok(doc.into())
    }

    /// Joins the partial results of the next key.
    fn merge_next(
        &self,
        rows: &mut SortedRows<Bytes>,
        ahead: &mut Option<(Box<[u8]>, Bytes)>,
        ctx: &QueryCtx,
    ) -> Result<Option<Row>> {
        let Some((key, first)) = ahead.take() else { return Ok(None) };
        let doc = RawDoc::trusted(&first);
        let id = Val::option(doc.get("_id"));
        let mut accs = self.accs.iter().map(|s| s.start(&id, ctx)).collect::<Result<Vec<_>>>()?;
        let mut merge = |doc: &RawDoc| -> Result<()> {
            let partials = doc.iter().filter(|e| e.name_bytes() == b"p");
            for (acc, e) in accs.iter_mut().zip(partials) {
                acc.merge(Val::Ref(e.value()), ctx)?;
            }
            Ok(())
        };
        merge(doc)?;
        while let Some((k, row)) = rows.next_row()? {
            if k != key {
                *ahead = Some((k, row));
                break;
            }
            merge(RawDoc::trusted(&row))?;
        }
        Ok(Some(self.output(id.value(), &mut accs)?))
    }
}

impl Running for Grouping {
    fn held_bytes(&self) -> usize {
        match &self.state {
            State::Filling(f) | State::Memory(f, _) => {
                f.bytes + f.sorter.as_ref().map_or(0, Sorter::held_bytes)
            }
            State::Merging(rows, _) => rows.held_bytes(),
            State::Fresh | State::Done => 0,
        }
    }
    fn held(&self) -> Option<Held> {
        let named = |(spec, n): (&AccSpec, &u64)| (spec.field.clone(), *n);
        Some(Held::Groups {
            accumulators: self.accs.iter().zip(&self.used.accumulators).map(named).collect(),
            bytes: self.used.bytes,
            spills: self.used.spills,
        })
    }
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.state, State::Done) {
                State::Fresh => self.state = State::Filling(Box::new(Filling::new(up.ctx()))),
                State::Filling(mut f) => {
                    if !self.fill(&mut f, up)? {
                        self.state = State::Filling(f);
                        return Ok(Step::NeedYield);
                    }
                    self.used.note(&f, u64::from(f.sorter.is_some()));
                    self.state = match (f.sorter.is_some(), &self.spill) {
                        (true, Some(space)) => {
                            f.spill(self.accs.len(), space, up.ctx())?;
                            let sorter = f.sorter.take().ok_or_else(|| Error::internal("lost a sorter"))?;
                            let mut rows = sorter.finish()?;
                            let ahead = rows.next_row()?;
                            State::Merging(rows, ahead)
                        }
                        _ => State::Memory(f, 0),
                    };
                }
                State::Memory(mut f, at) => {
                    if at == f.table.len() {
                        return Ok(Step::Eof);
                    }
                    let n = self.accs.len();
                    let id = std::mem::replace(&mut f.ids[at], Val::Missing);
                    let row = self.output(id.value(), &mut f.accs[at * n..(at + 1) * n])?;
                    self.state = State::Memory(f, at + 1);
                    return Ok(Step::Row(row));
                }
                State::Merging(mut rows, mut ahead) => {
                    let Some(row) = self.merge_next(&mut rows, &mut ahead, up.ctx())? else {
                        return Ok(Step::Eof);
                    };
                    self.state = State::Merging(rows, ahead);
                    return Ok(Step::Row(row));
                }
                State::Done => return Ok(Step::Eof),
            }
        }
    }
}
