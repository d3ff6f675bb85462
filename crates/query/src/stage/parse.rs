//! From an array of stages to a [`Pipeline`].

use super::element::{not_first, not_one_field, stage_spec};
use super::geo_near;
use super::metas::Uses;
use super::pipeline::Pipeline;
use super::sinks::{self, Sink};
use super::sources::{self, PipelineSource};
use super::spec::Stage;
use super::sub_pipeline::refuse_elsewhere;
use super::{registry, split_event};
use crate::ctx::QueryCtx;
use crate::expr::{ParseCtx, SEARCH_META, optimize_error};
use crate::facts::{MetaField, check_nearness, no_text_score};
use pando_base::limits::{PIPELINE_DEPTH_MAX, PIPELINE_STAGES_MAX};
use pando_base::{Error, ErrorCode, Result};
use pando_bson::depth::depth;
use pando_bson::{DocBuf, RawDoc};
use std::collections::BTreeSet;
use std::sync::Arc;

const NOT_FIRST: ErrorCode = ErrorCode(40602);
const NOT_LAST: ErrorCode = ErrorCode(40601);

impl Pipeline {
    /// Parses the `pipeline` array of an aggregate.
    pub fn parse(pipeline: &RawDoc, ctx: &QueryCtx) -> Result<Pipeline> {
        Pipeline::parse_only(pipeline, ctx)?.checked()
    }
    /// The same, for what is asked of a view: which stages come first is not known yet.
    pub fn parse_on_view(pipeline: &RawDoc, ctx: &QueryCtx) -> Result<Pipeline> {
        let mut pipeline = Pipeline::parse_only(pipeline, ctx)?;
        pipeline.misplaced = false;
        pipeline.checked()
    }
    /// Whether the stages can be a view's. What depends on who reads it, and on what, is looked at when it is read.
    pub fn check_definition(pipeline: &RawDoc) -> Result<()> {
        let mut ctx = QueryCtx::default();
        Arc::make_mut(&mut ctx.vars).defines = true;
        Pipeline::parse_only(pipeline, &ctx).map(drop)
    }
    fn checked(self) -> Result<Pipeline> {
        let mut pipeline = self;
        let ctx = pipeline.ctx.clone();
        ctx.end_counting();
        pipeline.check_metas()?;
        if ctx.vars.depth == 0 && pipeline.variables.contains(SEARCH_META) {
            return Err(no_search());
        }
        let near = pipeline.check_near();
        pipeline.optimize().map_err(|e| optimize_error("pipeline", e))?;
        near?;
        Ok(pipeline)
    }
    /// Parses a pipeline inside a stage.
    pub(super) fn parse_only(pipeline: &RawDoc, ctx: &QueryCtx) -> Result<Pipeline> {
        Pipeline::parse_stages(pipeline, ctx, false)
    }
    /// The same, for one in which not every stage may stand, as `check` says. All stages are parsed before their places are
    /// looked at, and `check` comes between the two.
    pub(super) fn parse_within(
        pipeline: &RawDoc,
        ctx: &QueryCtx,
        check: impl Fn(&RawDoc) -> Result<()>,
    ) -> Result<Pipeline> {
        let parsed = Pipeline::parse_only(pipeline, ctx);
        if let Err(e) = &parsed
            && !matches!(e.code, NOT_FIRST | NOT_LAST)
        {
            return parsed;
        }
        check(pipeline)?;
        parsed
    }
    pub(super) fn parse_stages(pipeline: &RawDoc, ctx: &QueryCtx, forwarded: bool) -> Result<Pipeline> {
        begin(pipeline, ctx)?;
        let mut stages = Vec::new();
        let mut source = PipelineSource::Collection;
        let mut sink: Option<Sink> = None;
        let mut sink_text = DocBuf::new();
        let mut splits_events = false;
        let mut wrong_place: Option<Error> = None; // Told when all stages are parsed.
        let mut uses = Uses::default();
        let mut variables = BTreeSet::new();
        for (at, e) in pipeline.iter().enumerate() {
            let spec = stage_spec(e.value())?;
            let Some(stage) = spec.first() else { return Err(not_one_field()) };
            if let Some(sink) = &sink {
                wrong_place.get_or_insert_with(|| sinks::not_last(sink.name()));
            }
            if splits_events {
                return Err(split_event::not_last());
            }
            if split_event::parse(stage, &source)? {
                splits_events = true;
                continue;
            }
            if let Some(found) = registry::sink(stage, Some(ctx))? {
                sink = Some(found);
                sink_text = spec.to_buf();
                continue;
            }
            if let Some(found) = sources::parse(stage, ctx)? {
                if ctx.vars.depth > 0 {
                    refuse_elsewhere(stage.name())?;
                }
                match at {
                    0 => source = found,
                    _ => drop(wrong_place.get_or_insert_with(|| behind(&source, stage.name()))),
                }
                continue;
            }
            let mut p = ParseCtx::new(ctx);
            p.forwarded = forwarded;
            let first = stages.len();
            let rewritten = registry::rewritten(stage, &p)?;
            for e in rewritten.as_deref().unwrap_or(spec) {
                registry::parse(e, &mut p, &mut stages)?;
            }
            uses.note((at, stage.name()), &p.metas, &mut stages, first)?;
            variables.append(&mut p.variables);
        }
        wrong_place.map_or(Ok(()), Err)?;
        // Who merges forwarded rows may ask for what no stage here does.
        let (text_score, nearness) = match forwarded {
            true => (uses.has_text(), stages.iter().any(|s| s.near().is_some())),
            false => (uses.text_score(), uses.nearness()),
        };
        let Uses { metas, unsorted, misplaced, .. } = uses;
        Ok(Pipeline {
            stages,
            source,
            sink: sink.map(|sink| (sink, sink_text)),
            splits_events,
            metas,
            text_score,
            nearness,
            unsorted,
            misplaced,
            variables,
            ctx: ctx.clone(),
        })
    }

    /// `$geoNear` is the find plan, so nothing that does anything may be in front of it.
    pub(super) fn check_near(&self) -> Result<()> {
        let Some(at) = self.stages.iter().rposition(|s| s.near().is_some()) else { return Ok(()) };
        let idle = |s: &Stage| s.filter().is_some_and(RawDoc::is_empty) || s.unpacking().is_some();
        if self.stages[..at].iter().all(idle) { Ok(()) } else { Err(geo_near::misplaced()) }
    }
    /// 2 when sort keys, 40218 when a text score is asked for and there is no search.
    fn check_metas(&self) -> Result<()> {
        if self.misplaced && self.source == PipelineSource::Collection {
            return Err(Error::bad_value("cannot use sortKey $meta projection without a sort"));
        }
        // What comes from elsewhere is not asked for what is known of it.
        if self.source != PipelineSource::Collection {
            return Ok(());
        }
        if self.stages.first().is_none_or(|s| s.near().is_none()) {
            check_nearness(&self.metas)?;
        }
        match self.metas.contains(&MetaField::TextScore) && !self.has_text() {
            true => Err(no_text_score()),
            false => Ok(()),
        }
    }
}

/// The stage has to be the first one; behind a `$changeStream` it is out of place anyway.
fn behind(source: &PipelineSource, name: &str) -> Error {
    match source {
        PipelineSource::ChangeStream(_) => {
            let text = format!("{name} is not permitted in a $changeStream pipeline");
            Error::new(ErrorCode::IllegalOperation, text)
        }
        _ => not_first(name),
    }
}

/// What is known of a search is asked for, and there is none.
pub(super) fn no_search() -> Error {
    let text = "Can't access $$SEARCH_META without a $search stage earlier in the pipeline";
    Error::location(6_347_903, text)
}

/// The names of stages are counted where there are no more of them than may be.
fn begin(pipeline: &RawDoc, ctx: &QueryCtx) -> Result<()> {
    check_size(pipeline)?;
    if let Some(named) = ctx.counts() {
        let stages = pipeline.iter().filter_map(|e| e.value().as_doc()?.first());
        stages.for_each(|stage| named.stage(stage.name()));
    }
    Ok(())
}

/// As many stages, and as deep ones, as may be.
fn check_size(pipeline: &RawDoc) -> Result<()> {
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
    Ok(())
}
