//! `$facet`: several pipelines over the same input, their results as arrays of one document.
//!
//! Documents go in by rounds. In each round every pipeline is pulled until it asks for a document beyond the round,
//! which it is told by "yield": so the input is read once and only one round of it is held.

use super::held::RanStage;
use super::needs::Needs;
use super::parsed::Parsed;
use super::pipeline::Pipeline;
use super::row::Row;
use super::runner::Runner;
use super::running::{Running, Start};
use super::step::{Input, Step};
use super::sub_pipeline::{deeper, shown};
use super::upstream::Upstream;
use crate::ctx::QueryCtx;
use crate::expr::{ParseCtx, check_field_name};
use crate::facts::{MetaField, no_text_score};
use pando_base::limits::{FACET_ROUND_BYTES, FACET_ROUND_DOCS};
use pando_base::{Error, HashMap, Result};
use pando_bson::{ArrayBuilder, DocBuilder, Elem, RawDoc, Value};
use std::collections::hash_map::Entry;

/// Several pipelines by name, over the same documents.
#[derive(Clone, PartialEq)]
pub(crate) struct Facet {
    pub(super) facets: Vec<(Box<str>, Pipeline)>,
}

struct Faceting {
    facets: Vec<Branch>,
    /// The documents of this round.
    round: Vec<Row>,
    round_bytes: usize,
    /// The branch whose turn it is, while a round is being given out.
    giving: Option<usize>,
    input_done: bool,
    output_bytes: usize,
    done: bool,
}

struct Branch {
    name: Box<str>,
    runner: Runner,
    /// Documents of the round it has taken.
    taken: usize,
    /// Documents of the rounds before.
    took: u64,
    /// Which of its stages are shown.
    shown: Vec<bool>,
    ended: bool,
    out: ArrayBuilder,
}

/// Stages that may not stand in a facet.
const REFUSED: &[&str] = &[
    "$facet",
    "$out",
    "$merge",
    "$collStats",
    "$geoNear",
    "$indexStats",
    "$planCacheStats",
    "$documents",
    "$listSessions",
    "$listLocalSessions",
    "$changeStream",
    "$listCatalog",
];

fn spec_of<'e>(e: Elem<'e>) -> Result<&'e RawDoc> {
    match e.value() {
        Value::Document(spec) if !spec.is_empty() => Ok(spec),
        _ => Err(Error::location(
            40169,
            format!("the $facet specification must be a non-empty object, but found: {e}"),
        )),
    }
}

/// The pipelines, each of them checked.
pub(super) fn pipelines<'e>(e: Elem<'e>) -> Result<impl Iterator<Item = Result<&'e RawDoc>>> {
    let spec = spec_of(e)?;
    Ok(spec.iter().map(|f| {
        check_field_name(f.name())?;
        let Value::Array(stages) = f.value() else { return Err(no_array(f)) };
        check_objects(f.name(), stages)?;
        Ok(stages)
    }))
}

fn no_array(f: Elem<'_>) -> Error {
    let text = format!("arguments to $facet must be arrays, {} is type {}", f.name(), f.ty.name());
    Error::location(40170, text)
}

pub(super) fn parse(e: Elem<'_>, p: &mut ParseCtx<'_>) -> Result<Facet> {
    let spec = spec_of(e)?;
    let ctx = deeper(p.ctx)?;
    let mut facets: Vec<(Box<str>, Pipeline)> = Vec::new();
    let mut has_text = false;
    let mut places: HashMap<&str, usize> = HashMap::default();
    for f in spec {
        check_field_name(f.name())?;
        let Value::Array(stages) = f.value() else { return Err(no_array(f)) };
        check_objects(f.name(), stages)?;
        let mut pipeline = Pipeline::parse_within(stages, &ctx, check_stages)?;
        has_text |= pipeline.has_text();
        p.variables.extend(pipeline.variables.iter().cloned());
        // Sort keys do not go into a facet, and its own sorts keep none.
        pipeline.stages.iter_mut().filter_map(|s| s.sort_mut()).for_each(|s| s.keep_key = false);
        let goes_in = |m: &&MetaField| **m == MetaField::TextScore || m.is_of_near();
        p.metas.extend(pipeline.metas().iter().filter(goes_in));
        let branch = (f.name().into(), pipeline);
        match places.entry(f.name()) {
            Entry::Occupied(at) => facets[*at.get()] = branch,
            Entry::Vacant(free) => {
                free.insert(facets.len());
                facets.push(branch);
            }
        }
    }
    match has_text && !p.ctx.vars.defines {
        true => Err(no_text_score()),
        false => Ok(Facet { facets }),
    }
}

fn check_objects(name: &str, stages: &RawDoc) -> Result<()> {
    match stages.iter().find(|s| s.value().as_doc().is_none()) {
        None => Ok(()),
        Some(s) => Err(Error::location(
            40171,
            format!(
                "elements of arrays in $facet spec must be non-empty objects, {name} argument contained an element of \
                 type {}: {s}",
                s.ty.name()
            ),
        )),
    }
}

fn check_stages(stages: &RawDoc) -> Result<()> {
    for stage in stages.iter().filter_map(|s| s.value().as_doc()) {
        if let Some(first) = stage.first()
            && REFUSED.contains(&first.name())
        {
            let text = format!("{} is not allowed to be used within a $facet stage", shown(first.name()));
            return Err(Error::location(40600, text));
        }
    }
    Ok(())
}

/// A round as a branch sees it.
struct Round<'a> {
    rows: &'a [Row],
    taken: &'a mut usize,
    last: bool,
    starved: bool,
}

impl Input for Round<'_> {
    fn next(&mut self) -> Result<Step> {
        if let Some(row) = self.rows.get(*self.taken) {
            *self.taken += 1;
            return Ok(Step::Row(row.clone()));
        }
        if self.last {
            return Ok(Step::Eof);
        }
        self.starved = true;
        Ok(Step::NeedYield)
    }
}

impl Faceting {
    /// Pulls a branch as far as the round goes; false when it wants to yield in between.
    fn give(&mut self, at: usize) -> Result<bool> {
        let branch = &mut self.facets[at];
        let runner = &mut branch.runner;
        while !branch.ended {
            let mut input =
                Round { rows: &self.round, taken: &mut branch.taken, last: self.input_done, starved: false };
            let step = runner.pull(&mut input, &mut false)?;
            match step {
                Step::Row(row) => {
                    self.output_bytes += row.bytes().len();
                    let max = runner.ctx().memory.facet;
                    if self.output_bytes > max {
                        return Err(Error::location(
                            4031700,
                            format!(
                                "document constructed by $facet is {} bytes, which exceeds the limit of \
                                 {max} bytes",
                                self.output_bytes
                            ),
                        ));
                    }
                    branch.out.raw_doc(row.doc());
                }
                Step::NeedYield if input.starved => return Ok(true),
                Step::NeedYield => return Ok(false),
                Step::Eof => branch.ended = true,
            }
        }
        Ok(true)
    }

    /// Collects the next round; false when the input wants to yield first.
    fn collect(&mut self, up: &mut Upstream<'_>) -> Result<bool> {
        while self.round.len() < FACET_ROUND_DOCS && self.round_bytes < FACET_ROUND_BYTES {
            match up.next()? {
                Step::Row(row) => {
                    self.round_bytes += row.bytes().len();
                    self.round.push(row);
                }
                Step::NeedYield => return Ok(false),
                Step::Eof => {
                    self.input_done = true;
                    break;
                }
            }
        }
        Ok(true)
    }
}

impl Parsed for Facet {
    fn start(self, run: &mut Start<'_>) -> Result<Box<dyn Running>> {
        let mut facets = Vec::with_capacity(self.facets.len());
        for (name, pipeline) in self.facets {
            let shown = pipeline.is_shown();
            let (runner, out) = (pipeline.start(run.env)?, ArrayBuilder::new());
            facets.push(Branch { name, runner, taken: 0, took: 0, shown, ended: false, out });
        }
        Ok(Box::new(Faceting {
            facets,
            round: Vec::new(),
            round_bytes: 0,
            giving: None,
            input_done: false,
            output_bytes: 0,
            done: false,
        }))
    }
    fn optimize(&mut self, _: &QueryCtx) -> Result<()> {
        self.facets.iter_mut().try_for_each(|(_, p)| p.optimize())
    }
    fn needs(&self, needs: &mut Needs) {
        for (_, pipeline) in &self.facets {
            let mut own = Needs::default();
            pipeline.add_needs(&mut own);
            match own.fields() {
                Some(fields) => needs.paths().extend(fields),
                None => return needs.whole(),
            }
        }
        needs.settle();
    }
}

impl Running for Faceting {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        if self.done {
            return Ok(Step::Eof);
        }
        loop {
            while let Some(at) = self.giving {
                if !self.give(at)? {
                    return Ok(Step::NeedYield);
                }
                self.giving = (at + 1 < self.facets.len()).then_some(at + 1);
                if self.giving.is_none() {
                    self.round.clear();
                    self.round_bytes = 0;
                    for b in &mut self.facets {
                        b.took += std::mem::take(&mut b.taken) as u64;
                    }
                }
            }
            if self.input_done || self.facets.iter().all(|b| b.ended) {
                break;
            }
            if !self.collect(up)? {
                return Ok(Step::NeedYield);
            }
            self.giving = Some(0);
        }
        self.done = true;
        let mut b = DocBuilder::with_capacity(self.output_bytes + 64);
        for branch in &mut self.facets {
            b.raw_array(&branch.name, &std::mem::take(&mut branch.out).finish());
        }
        Ok(Step::Row(b.finish().into()))
    }
    fn facets(&self) -> Vec<(u64, Vec<RanStage>)> {
        let of = |b: &Branch| {
            let ran = b.runner.ran();
            (b.took, ran.into_iter().zip(&b.shown).filter(|(_, shown)| **shown).map(|(r, _)| r).collect())
        };
        self.facets.iter().map(of).collect()
    }
    fn held_bytes(&self) -> usize {
        let runners = self.facets.iter().map(|b| &b.runner);
        self.round_bytes + self.output_bytes + runners.map(|r| r.held_bytes() as usize).sum::<usize>()
    }
    fn save(&mut self) {
        self.facets.iter_mut().for_each(|b| b.runner.save());
    }
}
