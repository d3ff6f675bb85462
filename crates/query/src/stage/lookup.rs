//! `$lookup`: for each document, those of another collection that belong to it.
//!
//! How they are found is decided once per run ([`Way`]): through an index without planning anew ([`Probe`]), from the
//! whole collection held by value ([`HashSide`]), from results that do not depend on the document at all, or by
//! running the sub-pipeline for each document. An `$unwind` of the result right behind is done here as well, so that
//! the array is never built.

use super::conditions;
use super::foreign::{Foreign, Sub};
use super::join_room::JoinRoom;
use super::join_stats::JoinStats;
use super::local_values::filter;
use super::lookup_hash::HashSide;
use super::lookup_probe::{Probe, has_index};
use super::lookup_spec::Lookup;
use super::pipeline::Pipeline;
use super::row::Row;
use super::running::{Running, Start};
use super::step::Step;
use super::sub_pipeline::{deeper, starts_with_documents};
use super::unwind::{Unwind, write_with};
use super::upstream::Upstream;
use crate::ctx::QueryCtx;
use crate::matcher::Matcher;
use bytes::Bytes;
use pando_base::{Error, Result};
use pando_bson::{ArrayBuilder, Bson, DocBuf, DocBuilder, ElementType, RawDoc};
use std::sync::Arc;

pub(super) struct Joining {
    spec: Lookup,
    unwind: Option<Unwind>,
    /// [`Lookup::joined`].
    joined: Option<Arc<Matcher>>,
    /// Of the sub-pipeline, without this stage's variables.
    ctx: QueryCtx,
    foreign: Option<Foreign>,
    way: Way,
    current: Option<Current>,
    room: JoinRoom,
}

/// How matches are found.
enum Way {
    Undecided,
    /// Reading the collection into the table.
    Building(Box<Sub>, Box<HashSide>),
    Hash(Box<HashSide>),
    Probe(Probe),
    /// Results that are the same for every document, while they are being collected and afterwards.
    Collecting(Box<Sub>, Vec<Bytes>, usize),
    Same(Vec<Bytes>),
    /// A run for each document.
    Each,
}

/// A document whose matches are being given out.
struct Current {
    row: Row,
    found: Found,
    array: ArrayBuilder,
    matched: i64,
}

enum Found {
    Rows(std::vec::IntoIter<Bytes>),
    /// Numbers of rows of the hash table.
    Numbers(std::vec::IntoIter<u32>),
    /// All of [`Way::Same`], from here on.
    Same(usize),
    Running(Box<Sub>),
}

impl Joining {
    pub(super) fn new(spec: Lookup, run: &Start<'_>) -> Result<Joining> {
        let ctx = deeper(run.ctx)?;
        Ok(Joining {
            foreign: Some(Foreign::new(run, &spec.from)?),
            unwind: spec.unwind.as_ref().map(|(unwind, _)| unwind.clone()),
            joined: spec.joined.as_ref().map(|m| m.matcher().clone()),
            room: JoinRoom::new(&ctx),
            spec,
            ctx,
            way: Way::Undecided,
            current: None,
        })
    }

    /// The results do not depend on the document.
    fn is_uncorrelated(&self) -> bool {
        let Some(pipeline) = &self.spec.pipeline else { return false };
        let text = pipeline.as_bytes();
        let has = |name: &[u8]| text.windows(name.len()).any(|w| w == name);
        self.spec.fields.is_none() && self.spec.let_vars.is_empty() && !has(b"$rand") && !has(b"$sample")
    }
    /// The context of the sub-pipeline for one document.
    fn bind(&self, doc: &RawDoc, outer: &QueryCtx) -> Result<QueryCtx> {
        let mut ctx = self.ctx.clone();
        if !self.spec.let_vars.is_empty() {
            let vars = Arc::make_mut(&mut ctx.vars);
            for (name, e) in self.spec.let_vars.iter() {
                let v = e.eval_doc(doc, outer)?;
                v.check_depth()?;
                vars.let_vars.set(name, v.value().map(Bson::from));
            }
        }
        Ok(ctx)
    }
    /// The sub-pipeline for one document; `None` when the collection cannot be opened yet.
    fn run(&self, foreign: &mut Foreign, doc: &RawDoc, outer: &QueryCtx) -> Result<Option<Sub>> {
        let ctx = self.bind(doc, outer)?;
        let equal = self.spec.fields.as_ref().map(|(local, path)| filter(doc, local, &path.dotted()));
        if let (Some(equal), None, None) = (&equal, &self.spec.pipeline, &foreign.target.view) {
            let joined = self.spec.joined.as_ref().map(|m| m.filter().to_buf());
            let both = joined.map(|joined| conditions::joined(&[equal.clone(), joined]));
            let matcher = Arc::new(Matcher::parse(both.as_ref().unwrap_or(equal), &ctx)?);
            return foreign.run_filter(matcher, &ctx);
        }
        let first = equal.as_ref().map(|filter| match_stage(filter));
        let last = self.spec.joined.as_ref().map(|m| match_stage(m.filter()));
        let mut lists: Vec<&RawDoc> = first.iter().map(|l| &**l).collect();
        let own = self.spec.pipeline.as_deref().map(split_source);
        if let Some((source, rest)) = &own {
            lists.insert(0, source);
            lists.push(rest);
        }
        lists.extend(last.as_deref());
        let stages = foreign.stages(lists);
        foreign.run(Pipeline::parse(&stages, &ctx)?)
    }
}

/// An array with one `$match`.
fn match_stage(filter: &RawDoc) -> DocBuf {
    let mut b = ArrayBuilder::new();
    b.raw_doc(&conditions::text(filter));
    b.finish()
}

/// A `$documents` in front, and the stages behind it: the equality comes between them.
fn split_source(stages: &RawDoc) -> (DocBuf, DocBuf) {
    let (mut source, mut rest) = (ArrayBuilder::new(), ArrayBuilder::new());
    let first = usize::from(starts_with_documents(stages));
    for (i, stage) in stages.iter().enumerate() {
        if i < first {
            source.value(stage.value())
        } else {
            rest.value(stage.value())
        };
    }
    (source.finish(), rest.finish())
}

impl Joining {
    /// `None` when the collection cannot be opened yet.
    fn decide(&self, foreign: &mut Foreign, ctx: &QueryCtx) -> Result<Option<Way>> {
        if self.is_uncorrelated() {
            let sub = self.run(foreign, RawDoc::empty(), ctx)?;
            return Ok(sub.map(|sub| Way::Collecting(Box::new(sub), Vec::new(), 0)));
        }
        let Some((_, path)) = &self.spec.fields else { return Ok(Some(Way::Each)) };
        let path = path.dotted();
        if self.spec.pipeline.is_some() || foreign.target.view.is_some() {
            return Ok(Some(Way::Each));
        }
        if !foreign.open()? {
            return Ok(None);
        }
        if foreign.is_elsewhere() {
            return Ok(Some(Way::Each));
        }
        let Some(info) = foreign.info() else { return Ok(Some(Way::Same(Vec::new()))) };
        if let Some(probe) = Probe::new(&info, &path, &self.ctx) {
            return Ok(Some(Way::Probe(probe)));
        }
        if has_index(&info, &path) {
            return Ok(Some(Way::Each));
        }
        let wanted = self.joined.clone().unwrap_or_else(|| Arc::new(Matcher::all()));
        let Some(sub) = foreign.run_filter(wanted, &self.ctx)? else { return Ok(None) };
        Ok(Some(Way::Building(Box::new(sub), Box::new(HashSide::new(&path, &self.ctx)?))))
    }

    /// Reads what has to be read before the first document; false when that wants to yield.
    fn prepare(&mut self, foreign: &mut Foreign, ctx: &QueryCtx) -> Result<bool> {
        loop {
            match &mut self.way {
                Way::Undecided => match self.decide(foreign, ctx)? {
                    Some(way) => self.way = way,
                    None => return Ok(false),
                },
                Way::Building(sub, side) => match sub.next(foreign)? {
                    Step::NeedYield => return Ok(false),
                    Step::Row(row) => {
                        side.add(row)?;
                        if !self.room.cache(side.bytes) {
                            self.room.cache(0);
                            self.way = Way::Each;
                        }
                    }
                    Step::Eof => {
                        if let Way::Building(_, side) = std::mem::replace(&mut self.way, Way::Each) {
                            self.way = Way::Hash(side);
                        }
                        foreign.save();
                    }
                },
                Way::Collecting(sub, rows, bytes) => match sub.next(foreign)? {
                    Step::NeedYield => return Ok(false),
                    Step::Row(row) => {
                        *bytes += row.bytes().len();
                        rows.push(row.into_bytes());
                        if !self.room.cache(*bytes) {
                            self.room.cache(0);
                            self.way = Way::Each;
                        }
                    }
                    Step::Eof => {
                        let rows = std::mem::take(rows);
                        self.way = Way::Same(rows);
                        foreign.save();
                    }
                },
                _ => return Ok(true),
            }
        }
    }

    /// `None` when the collection cannot be opened yet.
    fn find(&mut self, foreign: &mut Foreign, doc: &RawDoc, ctx: &QueryCtx) -> Result<Option<Found>> {
        if let (Way::Hash(side), Some((local, _))) = (&mut self.way, &self.spec.fields) {
            return Ok(Some(Found::Numbers(side.matches(doc, local)?.into_iter())));
        }
        if matches!(self.way, Way::Probe(_)) && !foreign.open()? {
            return Ok(None);
        }
        if let (Way::Probe(probe), Some((local, _))) = (&mut self.way, &self.spec.fields)
            && let Some(mut rows) = probe.matches(foreign, doc, local, &self.ctx)?
        {
            if let Some(joined) = &self.joined {
                let mut wanted = Vec::with_capacity(rows.len());
                for row in rows {
                    if joined.matches(RawDoc::trusted(&row))? {
                        wanted.push(row);
                    }
                }
                rows = wanted;
            }
            return Ok(Some(Found::Rows(rows.into_iter())));
        }
        if let Way::Same(_) = self.way {
            return Ok(Some(Found::Same(0)));
        }
        Ok(self.run(foreign, doc, ctx)?.map(|sub| Found::Running(Box::new(sub))))
    }

    /// The next match of the current document.
    fn next_match(way: &Way, foreign: &mut Foreign, found: &mut Found) -> Result<Step> {
        let row = match (found, way) {
            (Found::Rows(rows), _) => rows.next(),
            (Found::Numbers(numbers), Way::Hash(side)) => {
                numbers.next().map(|n| side.rows[n as usize].clone())
            }
            (Found::Same(at), Way::Same(rows)) => {
                *at += 1;
                rows.get(*at - 1).cloned()
            }
            (Found::Running(sub), _) => return sub.next(foreign),
            _ => None,
        };
        Ok(row.map_or(Step::Eof, |bytes| Step::Row(Row::new(bytes))))
    }

    /// What is given out for the current document once a match (or their end) is known.
    fn take_match(&mut self, found: Option<Row>, foreign: &Foreign) -> Result<Option<Row>> {
        let Some(cur) = &mut self.current else { return Ok(None) };
        match (&self.unwind, found) {
            (Some(unwind), Some(row)) => {
                let out = unwind.emit(
                    cur.row.doc(),
                    Some((ElementType::Document, row.doc().as_bytes())),
                    Some(cur.matched),
                );
                cur.matched += 1;
                Ok(Some(cur.row.becomes(out)))
            }
            (Some(unwind), None) => {
                let out = (unwind.preserve && cur.matched == 0)
                    .then(|| cur.row.becomes(unwind.emit(cur.row.doc(), None, None)));
                self.current = None;
                Ok(out)
            }
            (None, Some(row)) => {
                cur.array.raw_doc(row.doc());
                let bytes = cur.array.byte_len();
                let max = self.ctx.memory.join;
                if !self.room.matched(bytes) || bytes > max {
                    return Err(too_large(&foreign.target.ns, max));
                }
                Ok(None)
            }
            (None, None) => {
                let Some(cur) = self.current.take() else { return Ok(None) };
                let array = cur.array.finish();
                self.room.matched(0);
                let mut b = DocBuilder::with_capacity(cur.row.doc().byte_len() + array.byte_len() + 32);
                let value = Some((ElementType::Array, array.as_bytes()));
                write_with(cur.row.doc(), self.spec.as_path.parts(), value, &mut b);
                Ok(Some(cur.row.becomes(b.finish().into())))
            }
        }
    }

    fn pull(&mut self, foreign: &mut Foreign, up: &mut Upstream<'_>) -> Result<Step> {
        loop {
            if let Some(cur) = &mut self.current {
                let found = match Joining::next_match(&self.way, foreign, &mut cur.found)? {
                    Step::NeedYield => return Ok(Step::NeedYield),
                    Step::Row(row) => Some(row),
                    Step::Eof => None,
                };
                if let Some(row) = self.take_match(found, foreign)? {
                    return Ok(Step::Row(row));
                }
                continue;
            }
            let ctx = up.ctx();
            let row = match up.next()? {
                Step::Row(row) => row,
                step => return Ok(step),
            };
            // Nothing is read from the other side before there is a document to join; a yield here must not lose it.
            self.current = Some(Current {
                row,
                found: Found::Rows(Vec::new().into_iter()),
                array: ArrayBuilder::new(),
                matched: -1,
            });
            if !self.begin(foreign, ctx)? {
                return Ok(Step::NeedYield);
            }
        }
    }

    /// Finds the matches of the current document; false when something has to be read first and wants to yield.
    fn begin(&mut self, foreign: &mut Foreign, ctx: &QueryCtx) -> Result<bool> {
        if !self.prepare(foreign, ctx)? {
            return Ok(false);
        }
        let Some(mut cur) = self.current.take() else { return Ok(true) };
        let found = self.find(foreign, cur.row.doc(), ctx)?;
        let begun = found.is_some();
        if let Some(found) = found {
            (cur.found, cur.matched) = (found, 0);
        }
        self.current = Some(cur);
        Ok(begun)
    }
}

fn too_large(ns: &str, max: usize) -> Error {
    let coll = ns.split_once('.').map_or(ns, |(_, coll)| coll);
    Error::location(
        4568,
        format!("Total size of documents in {coll} matching pipeline's $lookup stage exceeds {max} bytes"),
    )
}

impl Running for Joining {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        let mut foreign = self.foreign.take().ok_or_else(|| Error::internal("not started"))?;
        // A document that was waiting for the other side.
        let waiting = self.current.as_ref().is_some_and(|c| c.matched < 0);
        let step = match waiting {
            true => match self.begin(&mut foreign, up.ctx()) {
                Ok(true) => self.pull(&mut foreign, up),
                Ok(false) => Ok(Step::NeedYield),
                Err(e) => Err(e),
            },
            false => self.pull(&mut foreign, up),
        };
        self.foreign = Some(foreign);
        step
    }
    fn join_stats(&self) -> Option<JoinStats> {
        self.foreign.as_ref().map(|f| f.stats.clone())
    }
    fn held_bytes(&self) -> usize {
        match &self.way {
            Way::Building(_, table) | Way::Hash(table) => table.bytes,
            Way::Collecting(_, rows, _) | Way::Same(rows) => {
                rows.iter().map(|r| r.len() + size_of::<Bytes>()).sum()
            }
            Way::Undecided | Way::Probe(_) | Way::Each => 0,
        }
    }
    fn save(&mut self) {
        if let Way::Building(sub, _) | Way::Collecting(sub, ..) = &mut self.way {
            sub.save();
        }
        if let Some(Current { found: Found::Running(sub), .. }) = &mut self.current {
            sub.save();
        }
        if let Some(foreign) = &mut self.foreign {
            foreign.save();
        }
    }
}
