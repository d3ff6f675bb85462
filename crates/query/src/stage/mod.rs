//! Aggregation pipelines: stages that pull documents from the one before.
//!
//! ```text
//!   input (find plan, or a callback's documents)        Runner::next
//!      ▲ Step::{Row, NeedYield, Eof}                        │
//!   [$match] ◄─ pulls ─ [$group] ◄─ pulls ─ [$sort] ◄───────┘
//! ```
//!
//! [`Pipeline::parse`] checks and compiles; [`Pipeline::take_find`] hands the leading filter, sort, skip and limit,
//! and the fields that the rest needs, to the find planner; [`Pipeline::start`] gives a [`Runner`]. A stage that is
//! told `NeedYield` returns it at once and goes on where it was when called again, so the caller may drop and
//! reopen its snapshot between calls.
//!
//! One stage per file, one row each in [`registry`]. Reshaping of single documents ([`transform`]) is shared
//! with pipeline updates.

mod add_fields;
mod ask_buckets;
mod bounded_sort;
mod bucket;
mod bucket_auto;
mod bucket_ends;
mod bucket_order;
mod count;
mod densify;
mod facet;
mod fill;
mod find_part;
mod first_look;
mod foreign;
mod geo_near;
mod granularity;
mod graph_lookup;
mod group;
mod group_table;
mod held;
mod into_buckets;
mod involved;
mod join_room;
mod limit;
mod local_values;
mod lookup;
mod lookup_hash;
mod lookup_probe;
mod lookup_spec;
mod match_forward;
mod matching;
mod metas;
mod needs;
mod redact;
mod registry;
mod reorder;
mod replace_root;
mod sample;
pub(crate) mod shape;
mod sinks;
mod skip;
mod sort;
mod sort_by_count;
mod sources;
mod spelled;
mod split_event;
mod transform;
mod union_with;
mod unpack_bucket;
mod unwind;
mod window;

pub use ask_buckets::{bucket_filter, partial_filter};
pub use find_part::FindPart;
pub use first_look::first_look;
pub use foreign::{Collections, JoinStats, Target};
pub use geo_near::NearPart;
pub use held::{Held, RanStage};
pub use involved::involved;
pub(crate) use needs::Needs;
pub(crate) use registry::names;
pub use sinks::{Into, Merge, Sink, WhenMatched, WhenNotMatched};
pub use sources::{Literal, PipelineSource};
pub(crate) use transform::{Transform, TransformStage, parse_update_stage};
pub use unpack_bucket::measurements;
pub(crate) use window::names as window_names;

use crate::ctx::QueryCtx;
use crate::exec::{Each, Fed};
use crate::expr::{ParseCtx, optimize_error};
use crate::facts::Facts;
use crate::plan::Firsts;
use crate::projection::{MetaField, Projection};
use crate::reply_depth::check_reply_depth;
use crate::sort::{SortPattern, SpillSpace};
use bytes::Bytes;
use pando_base::limits::{
    BSON_INTERNAL_BYTES_MAX, EXPRESSION_VALUES_BYTES_MAX, PIPELINE_DEPTH_MAX, PIPELINE_STAGES_MAX,
    STAGE_ROWS_PER_TURN,
};
use pando_base::{Error, ErrorCode, Result, patience};
use pando_bson::depth::depth;
use pando_bson::{DocBuf, DocBuilder, Elem, RawDoc, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use unwind::Unwind;

/// A document on its way through a pipeline.
#[derive(Clone, Debug)]
pub struct Row {
    bytes: Bytes,
    facts: Option<Box<Facts>>,
}

impl Row {
    pub fn new(bytes: Bytes) -> Row {
        Row { bytes, facts: None }
    }
    pub fn with_facts(self, facts: Option<Box<Facts>>) -> Row {
        Row { facts, ..self }
    }
    pub fn facts(&self) -> Option<&Facts> {
        self.facts.as_deref()
    }
    /// The document of another row, with what is known of this one.
    pub(crate) fn becomes(&self, next: Row) -> Row {
        next.with_facts(self.facts.clone())
    }
    /// With these fields only.
    fn narrowed(self, keep: Option<&BTreeSet<String>>) -> Row {
        let Some(keep) = keep else { return self };
        let mut b = DocBuilder::with_capacity(128);
        keep_only(self.doc(), keep, &mut b);
        self.becomes(b.finish().into())
    }
    #[inline]
    pub fn doc(&self) -> &RawDoc {
        RawDoc::trusted(&self.bytes)
    }
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

impl From<DocBuf> for Row {
    fn from(doc: DocBuf) -> Row {
        Row::new(Bytes::from(doc.into_bytes()))
    }
}

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

/// The stages before one stage, with the input in front of them.
pub(crate) struct Upstream<'a> {
    stages: &'a mut [Box<dyn Stage>],
    /// Rows that each of them gave.
    returned: &'a mut [u64],
    input: &'a mut dyn Input,
    /// An error came from the input: it has its own context.
    input_failed: &'a mut bool,
    /// Rows that stages may still give before others get a chance to run: some make many out of one.
    budget: &'a mut u32,
    ctx: &'a QueryCtx,
}

impl<'a> Upstream<'a> {
    pub(crate) fn next(&mut self) -> Result<Step> {
        match (self.stages.split_last_mut(), self.returned.split_last_mut()) {
            (Some((last, before)), Some((count, returned))) => {
                if *self.budget == 0 {
                    *self.budget = STAGE_ROWS_PER_TURN;
                    return Ok(Step::NeedYield);
                }
                *self.budget -= 1;
                let step = last.next(&mut Upstream {
                    stages: before,
                    returned,
                    input: self.input,
                    input_failed: self.input_failed,
                    budget: self.budget,
                    ctx: self.ctx,
                })?;
                if let Step::Row(row) = &step {
                    *count += 1;
                    check_row(row)?;
                }
                patience::check()?;
                Ok(step)
            }
            _ => self.input.next().inspect_err(|_| *self.input_failed = true),
        }
    }
    /// Shows the documents to come to `each`.
    pub(crate) fn feed(&mut self, each: &mut Each<'_>) -> Result<Fed> {
        if self.stages.is_empty()
            && let Some(end) = self.input.feed(each)
        {
            return end.inspect_err(|_| *self.input_failed = true);
        }
        if let Some(end) = self.feed_from_last(each) {
            return end;
        }
        loop {
            match self.next()? {
                Step::Row(row) if each(row.bytes())? => {}
                Step::Row(_) => return Ok(Fed::Stopped),
                Step::NeedYield => return Ok(Fed::NeedYield),
                Step::Eof => return Ok(Fed::Eof),
            }
        }
    }
    /// `None` when the last of the stages gives rows only.
    fn feed_from_last(&mut self, each: &mut Each<'_>) -> Option<Result<Fed>> {
        let (last, before) = self.stages.split_last_mut()?;
        let (count, returned) = self.returned.split_last_mut()?;
        let mut up = Upstream {
            stages: before,
            returned,
            input: self.input,
            input_failed: self.input_failed,
            budget: self.budget,
            ctx: self.ctx,
        };
        let mut counted = |doc: &[u8]| {
            *count += 1;
            each(doc)
        };
        last.feed(&mut up, &mut counted)
    }
    pub(crate) fn ctx(&self) -> &'a QueryCtx {
        self.ctx
    }
}

const FEW_FIELDS: usize = 8;

/// Copies the fields of these names.
fn keep_only(doc: &RawDoc, keep: &BTreeSet<String>, b: &mut DocBuilder) {
    // Few names are compared one by one, as they lie.
    let few = keep.len() <= FEW_FIELDS;
    let kept = |e: &Elem<'_>| match few {
        true => keep.iter().any(|name| e.is_named(name.as_bytes())),
        false => keep.contains(e.name()),
    };
    doc.iter().filter(kept).for_each(|e| {
        b.elem(e);
    });
}

/// A row on its way from stage to stage: as large as a value may be, and then the document around it.
const ROW_BYTES_MAX: usize = EXPRESSION_VALUES_BYTES_MAX + BSON_INTERNAL_BYTES_MAX;
/// Bytes of a row that are copied in one step.
const ROW_BYTES_PER_STEP: usize = 1024;

#[inline]
fn check_row(row: &Row) -> Result<()> {
    let bytes = row.bytes().len();
    patience::spend(1 + bytes / ROW_BYTES_PER_STEP)?;
    if bytes <= ROW_BYTES_MAX {
        return Ok(());
    }
    let max = BSON_INTERNAL_BYTES_MAX;
    let text =
        format!("BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {max}(16MB)");
    Err(Error::new(ErrorCode::BSONObjectTooLarge, text))
}

/// What `null` where an array is expected gets.
fn null_array(field: &str) -> Error {
    Error::location(10065, format!("invalid parameter: expected an object ({field})"))
}

/// What a stage needs from the run it is part of.
#[derive(Clone, Default)]
pub struct RunEnv {
    /// Where blocking stages may spill; `None` when `allowDiskUse` is false.
    pub spill: Option<Arc<dyn SpillSpace>>,
    /// The other collections; `None` where no stage may read them.
    pub collections: Option<Arc<dyn Collections>>,
}

fn add_needs(stages: &[Box<dyn Stage>], needs: &mut Needs) {
    for stage in stages {
        stage.needs(needs);
        if needs.is_settled() {
            break;
        }
    }
}

/// One stage, from parsed to running.
pub(crate) trait Stage: Send {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step>;
    /// Shows its documents to `each` without making rows of them. `None` when it does not do that.
    fn feed(&mut self, _up: &mut Upstream<'_>, _each: &mut Each<'_>) -> Option<Result<Fed>> {
        None
    }
    /// Called once before the first `next`.
    fn start(&mut self, _env: &RunEnv) -> Result<()> {
        Ok(())
    }
    fn optimize(&mut self, _ctx: &QueryCtx) -> Result<()> {
        Ok(())
    }
    /// Adds what it reads, and says whether later stages still see the input's other fields.
    fn needs(&self, needs: &mut Needs);
    /// A `$project` that keeps named fields gives itself away, to the find plan.
    fn take_inclusion(&mut self) -> Option<shape::Shape> {
        None
    }
    /// Moves this stage into the find plan, if it can go there.
    fn push_down(&mut self, _find: &mut FindPart) -> bool {
        false
    }
    /// A `$limit` right behind: a sort needs to keep only so many.
    fn absorb_limit(&mut self, _limit: u64) {}
    fn as_limit(&self) -> Option<u64> {
        None
    }
    fn as_skip(&self) -> Option<u64> {
        None
    }
    /// An `$unwind` right behind, which this stage does as well from then on.
    fn absorb_unwind(&mut self, _unwind: &Unwind) -> bool {
        false
    }
    fn as_unwind(&self) -> Option<&Unwind> {
        None
    }
    /// Whether a condition on `path` has the same outcome before this stage as behind it.
    fn leaves_alone(&self, _path: &str) -> bool {
        false
    }
    /// Where the value that a condition on `path` looks at lies before this stage; `None` when that is nowhere.
    fn origin(&self, path: &str) -> Option<Origin> {
        self.leaves_alone(path).then(|| Origin { path: path.to_owned(), same: true })
    }
    /// Gives one document for each that comes in, in the same order.
    fn is_one_for_one(&self) -> bool {
        false
    }
    /// A `$lookup` that gives one document per match: the field they are in.
    fn joined_field(&self) -> Option<&str> {
        None
    }
    /// Only joins documents of the other side that match.
    fn filter_joined(&mut self, _filter: &RawDoc) -> Result<()> {
        Ok(())
    }
    /// Nobody looks at other fields of the documents that come in, this stage included.
    fn keep_fields(&mut self, _names: BTreeSet<String>) {}
    /// Its rows may nest deeper than those it gets.
    fn may_nest(&self) -> bool {
        true
    }
    /// It has many rows at a time, or the same several times.
    fn holds_rows(&self) -> bool {
        false
    }
    /// The filter of a `$match`, and the same stage with another filter.
    fn as_filter(&self) -> Option<&RawDoc> {
        None
    }
    /// A `$group` that looks at one document of each group.
    fn as_firsts(&self) -> Option<Firsts> {
        None
    }
    /// A `$group` that looks at the least and greatest values of paths only.
    fn as_extremes(&self) -> Option<bucket_ends::Extremes> {
        None
    }
    /// Somebody behind looks at the least and greatest values of these paths, and at the source.
    fn give_ends(&mut self, _paths: Vec<Vec<String>>) {}
    /// It unpacks the buckets of this series.
    fn as_unpack(&self) -> Option<unpack_bucket::Series<'_>> {
        None
    }
    /// How explain shows it, when that is not as it was written.
    fn shown(&self) -> Option<DocBuf> {
        None
    }
    /// Its rows are new ones, of which nothing is known.
    fn drops_facts(&self) -> bool {
        false
    }
    /// The pattern of a `$sort`.
    fn sort_pattern(&self) -> Option<&SortPattern> {
        None
    }
    /// A `$lookup` whose matches stay together.
    fn adds_a_field(&self) -> bool {
        false
    }
    /// A `$sort` that another may do instead.
    fn as_sort(&self) -> Option<sort::SortAsked> {
        None
    }
    /// Buckets come in this order from now on.
    fn follow_order(&mut self, _order: bucket_order::BucketOrder) {}
    /// A `$match` with `$text`.
    fn has_text(&self) -> bool {
        false
    }
    /// Somebody behind a `$sort` asks for its keys.
    fn keep_sort_key(&mut self) {}
    /// Somebody asks what is known of rows: their bytes alone do not do.
    fn reads_facts(&mut self) {}
    /// A `$geoNear`, which has to become the find plan.
    fn as_near(&self) -> Option<&NearPart> {
        None
    }
    /// What it read of another collection.
    fn join_stats(&self) -> Option<JoinStats> {
        None
    }
    fn held_bytes(&self) -> usize {
        0
    }
    /// What it collected, if it is one that collects.
    fn held(&self) -> Option<Held> {
        None
    }
    /// What the pipelines of a `$facet` did.
    fn facets(&self) -> Vec<(u64, Vec<RanStage>)> {
        Vec::new()
    }
    /// Lets go of snapshots of other collections; the next pull may open newer ones.
    fn save(&mut self) {}
}

/// A value before some stage.
pub(crate) struct Origin {
    pub(crate) path: String,
    /// The very value. Otherwise what is missing may have become null, and equal values one of them.
    pub(crate) same: bool,
}

/// A compiled pipeline.
pub struct Pipeline {
    stages: Vec<Box<dyn Stage>>,
    /// What explain shows of each; `None` for all but the last of those that one specification stands for.
    shown: Vec<Option<DocBuf>>,
    source: PipelineSource,
    sink: Option<Sink>,
    splits_events: bool,
    /// What its stages ask `$meta` for.
    metas: Vec<MetaField>,
    text_score: bool,
    nearness: bool,
    unsorted: bool,
    misplaced: bool,
    ctx: QueryCtx,
}

impl Pipeline {
    /// Parses the `pipeline` array of an aggregate.
    pub fn parse(pipeline: &RawDoc, ctx: &QueryCtx) -> Result<Pipeline> {
        let mut pipeline = Pipeline::parse_only(pipeline, ctx)?;
        pipeline.check_metas()?;
        pipeline.check_near()?;
        pipeline.optimize().map_err(|e| optimize_error("pipeline", e))?;
        Ok(pipeline)
    }
    /// Parses a pipeline inside a stage.
    pub(crate) fn parse_only(pipeline: &RawDoc, ctx: &QueryCtx) -> Result<Pipeline> {
        if pipeline.count() > PIPELINE_STAGES_MAX {
            return Err(Error::failed_to_parse(format!(
                "Pipeline length must be no longer than {PIPELINE_STAGES_MAX} stages."
            )));
        }
        if depth(pipeline) > PIPELINE_DEPTH_MAX / PIPELINE_STAGES_MAX {
            let levels: usize = pipeline.iter().filter_map(|s| s.value().as_doc()).map(depth).sum();
            if levels > PIPELINE_DEPTH_MAX {
                let text = format!(
                    "Stages of a pipeline must have no more than {PIPELINE_DEPTH_MAX} levels of nesting together"
                );
                return Err(Error::new(ErrorCode::Overflow, text));
            }
        }
        let (mut stages, mut shown) = (Vec::new(), Vec::new());
        let mut source = PipelineSource::Collection;
        let mut sink: Option<Sink> = None;
        let mut splits_events = false;
        let mut uses = metas::Uses::default();
        for (at, e) in pipeline.iter().enumerate() {
            let spec = stage_spec(e.value())?;
            let Some(stage) = spec.first() else { return Err(not_one_field()) };
            if let Some(sink) = &sink {
                return Err(sinks::not_last(sink.name()));
            }
            if splits_events {
                return Err(split_event::not_last());
            }
            if split_event::parse(stage, &source)? {
                splits_events = true;
                continue;
            }
            if let Some(found) = sinks::parse(stage, ctx)? {
                sink = Some(found);
                continue;
            }
            if let Some(found) = sources::parse(stage, ctx)? {
                if at > 0 && matches!(found, PipelineSource::Sessions(_)) && ctx.vars.db != "config" {
                    return Err(Error::new(
                        ErrorCode::InvalidNamespace,
                        "$listSessions may only be run against config.system.sessions",
                    ));
                }
                if at > 0 {
                    return Err(not_first(stage.name()));
                }
                source = found;
                continue;
            }
            let mut p = ParseCtx::new(ctx);
            let first = stages.len();
            let rewritten = registry::rewritten(stage, &p)?;
            for e in rewritten.as_deref().unwrap_or(spec) {
                registry::parse(e, &mut p, &mut stages)?;
                shown.resize(stages.len().max(shown.len() + 1) - 1, None);
                let mut one = DocBuilder::new();
                one.elem(e);
                shown.push(Some(one.finish()));
            }
            uses.note((at, stage.name()), &p.metas, &mut stages, first)?;
        }
        let (text_score, nearness) = (uses.text_score(), uses.nearness());
        let metas::Uses { metas, unsorted, misplaced, .. } = uses;
        Ok(Pipeline {
            stages,
            shown,
            source,
            sink,
            splits_events,
            metas,
            text_score,
            nearness,
            unsorted,
            misplaced,
            ctx: ctx.clone(),
        })
    }

    /// A change stream whose large events are to come in fragments.
    pub fn splits_events(&self) -> bool {
        self.splits_events
    }
    /// `$geoNear` is the find plan, so nothing that does anything may be in front of it.
    fn check_near(&self) -> Result<()> {
        let Some(at) = self.stages.iter().rposition(|s| s.as_near().is_some()) else { return Ok(()) };
        #[allow(clippy::borrowed_box)] // what an iterator over boxes gives
        let idle =
            |s: &Box<dyn Stage>| s.as_filter().is_some_and(RawDoc::is_empty) || s.as_unpack().is_some();
        if self.stages[..at].iter().all(idle) { Ok(()) } else { Err(geo_near::misplaced()) }
    }
    /// Why a pipeline cannot run when there is no collection `ns`.
    pub fn needs_collection(&self, ns: &str) -> Result<()> {
        match self.stages.iter().any(|s| s.as_near().is_some()) {
            true => Err(geo_near::no_collection(ns)),
            false => Ok(()),
        }
    }

    pub fn source(&self) -> &PipelineSource {
        &self.source
    }
    /// Where the results go, if they are not for the caller.
    pub fn take_sink(&mut self) -> Option<Sink> {
        self.sink.take()
    }
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }
    /// Each stage as explain spells it.
    pub fn explained(&self) -> Vec<Option<DocBuf>> {
        let spelled = |stage: &DocBuf| spelled::spelled(stage, &self.ctx);
        let mut all: Vec<Option<DocBuf>> = self.shown.iter().map(|s| s.as_ref().map(spelled)).collect();
        spelled::join_limits(&mut all);
        all
    }
    /// Which of the stages are shown.
    pub(crate) fn is_shown(&self) -> Vec<bool> {
        let mut all = self.shown.clone();
        spelled::join_limits(&mut all);
        all.iter().map(Option::is_some).collect()
    }
    /// Each stage as written, or as it became.
    pub fn shown(&self) -> &[Option<DocBuf>] {
        &self.shown
    }

    pub(crate) fn optimize(&mut self) -> Result<()> {
        for stage in &mut self.stages {
            stage.optimize(&self.ctx)?;
        }
        self.measure_in_buckets()?;
        self.move_filters_forward()?;
        self.push_into_buckets()?;
        let mut at = 1;
        while at < self.stages.len() {
            let (before, behind) = self.stages.split_at_mut(at);
            let absorbed = match (before.last_mut(), behind[0].as_unwind()) {
                (Some(stage), Some(unwind)) => stage.absorb_unwind(unwind),
                _ => false,
            };
            if absorbed {
                self.stages.remove(at);
                self.show_unwinding(at);
            }
            at += 1;
        }
        self.filter_joined_documents()?;
        self.move_sorts_forward();
        self.move_limits_forward();
        // A sort that is followed by a limit keeps only the top.
        for at in 1..self.stages.len() {
            let Some(mut limit) = self.stages[at].as_limit() else { continue };
            let mut sort = at - 1;
            while let Some(skip) = self.stages[sort].as_skip().filter(|_| sort > 0) {
                limit = limit.saturating_add(skip);
                sort -= 1;
            }
            self.stages[sort].absorb_limit(limit);
        }
        self.narrow_held();
        self.narrow_unpacked();
        Ok(())
    }
    /// Takes away the leading stages that a find plan can do, and says which fields the rest needs.
    pub fn take_find(&mut self) -> FindPart {
        let mut find =
            FindPart { text_score: self.text_score, nearness: self.nearness, ..FindPart::default() };
        let mut taken = 0;
        loop {
            self.join_filters(taken);
            let Some(stage) = self.stages.get_mut(taken) else { break };
            // Conditions behind a `$geoNear` may be on what it adds.
            if find.near.is_some() && stage.as_limit().is_none() || !stage.push_down(&mut find) {
                break;
            }
            taken += 1;
        }
        find.project = self.project_at(taken, &find);
        taken += usize::from(find.project.is_some());
        self.stages.drain(..taken);
        self.shown.drain(..taken);
        let mut needs = Needs::default();
        self.add_needs(&mut needs);
        find.fields = needs.fields();
        if find.project.is_none()
            && find.skip == 0
            && find.limit.is_none()
            && find.near.is_none()
            && !find.text_score
        {
            find.firsts = self.stages.first().and_then(|s| s.as_firsts());
        }
        if self.unsorted {
            self.stages.insert(0, Box::new(metas::Unsorted));
            self.shown.insert(0, None);
        }
        find
    }
    /// The stage at `at`, if the find plan can do it last.
    fn project_at(&mut self, at: usize, find: &FindPart) -> Option<Arc<Projection>> {
        if !self.metas.is_empty() || find.near.is_some() || find.text_score || find.nearness {
            return None;
        }
        let spec = self.shown.get(at)?.as_deref()?.get("$project")?.as_doc()?;
        let spec = spelled::projection(spec, &self.ctx);
        let shape = self.stages.get_mut(at)?.take_inclusion()?;
        let projection = match shape.computes() {
            true => Projection::of_stage(spec, shape, &self.ctx),
            false => Projection::parse(&spec, &self.ctx)
                .unwrap_or_else(|_| Projection::of_stage(spec, shape, &self.ctx)),
        };
        Some(Arc::new(projection))
    }
    pub(crate) fn add_needs(&self, needs: &mut Needs) {
        add_needs(&self.stages, needs);
    }

    /// Ready to pull.
    pub fn start(mut self, env: &RunEnv) -> Result<Runner> {
        for stage in &mut self.stages {
            stage.start(env)?;
        }
        let returned = vec![0; self.stages.len()];
        let nests = self.stages.iter().any(|s| s.may_nest());
        Ok(Runner { nests, returned, stages: self.stages, budget: STAGE_ROWS_PER_TURN, ctx: self.ctx })
    }
}

fn not_first(stage: &str) -> Error {
    Error::location(40602, format!("{stage} is only valid as the first stage in a pipeline"))
}

fn not_one_field() -> Error {
    Error::location(40323, "A pipeline stage specification object must contain exactly one field.")
}

/// A stage is an object with one field.
pub(crate) fn stage_spec(v: Value<'_>) -> Result<&RawDoc> {
    let Value::Document(spec) = v else {
        return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
    };
    if spec.count() != 1 {
        return Err(not_one_field());
    }
    Ok(spec)
}

/// A pipeline in the middle of its run. Owned and `Send`; the input is given anew with each pull.
pub struct Runner {
    stages: Vec<Box<dyn Stage>>,
    returned: Vec<u64>,
    budget: u32,
    /// Its rows may nest deeper than documents in a collection.
    nests: bool,
    ctx: QueryCtx,
}

impl Runner {
    pub fn ctx(&self) -> &QueryCtx {
        &self.ctx
    }
    /// The next result.
    pub fn next(&mut self, input: &mut dyn Input) -> Result<Step> {
        let mut input_failed = false;
        let mut step = self.pull(input, &mut input_failed);
        if self.nests
            && let Ok(Step::Row(row)) = &step
        {
            step = check_reply_depth(row.doc()).and(step);
        }
        step.map_err(|e| if input_failed { e } else { e.context("PlanExecutor error during aggregation") })
    }
    /// Lets go of the present snapshots of other collections.
    pub fn save(&mut self) {
        self.stages.iter_mut().for_each(|s| s.save());
    }
    /// The next result, with errors as they are.
    pub(crate) fn pull(&mut self, input: &mut dyn Input, input_failed: &mut bool) -> Result<Step> {
        let mut all = Upstream {
            stages: &mut self.stages,
            returned: &mut self.returned,
            input,
            input_failed,
            budget: &mut self.budget,
            ctx: &self.ctx,
        };
        all.next()
    }
}

#[cfg(test)]
mod ask_buckets_tests;
#[cfg(test)]
mod tests;
