//! A parsed pipeline: stages as data, between where documents come from and where results go.

use super::element::{not_first, not_one_field, stage_spec};
use super::needs::Needs;
use super::runner::Runner;
use super::running::{RunEnv, Start};
use super::sinks::{self, Sink};
use super::sources::{self, PipelineSource};
use super::spec::{Stage, add_needs};
use super::{geo_near, metas, registry, spelled, split_event};
use crate::ctx::QueryCtx;
use crate::expr::{ParseCtx, optimize_error};
use crate::facts::{MetaField, check_nearness, no_text_score};
use pando_base::limits::{PIPELINE_DEPTH_MAX, PIPELINE_STAGES_MAX};
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::depth::depth;
use pando_bson::{DocBuf, RawDoc};
use std::collections::BTreeSet;

/// A parsed pipeline. Two are equal when their stages are written the same and know the same, whatever the variables and the
/// collation that they are to run with.
#[derive(Clone)]
pub struct Pipeline {
    pub(super) stages: Vec<Stage>,
    pub(super) source: PipelineSource,
    /// With its text.
    pub(super) sink: Option<(Sink, DocBuf)>,
    pub(super) splits_events: bool,
    /// What its stages ask `$meta` for.
    pub(super) metas: Vec<MetaField>,
    pub(super) text_score: bool,
    pub(super) nearness: bool,
    pub(super) unsorted: bool,
    pub(super) misplaced: bool,
    /// Those of the command and of the system that its stages name.
    pub(super) variables: BTreeSet<String>,
    pub(super) ctx: QueryCtx,
}

impl PartialEq for Pipeline {
    fn eq(&self, other: &Pipeline) -> bool {
        let sink = |p: &Pipeline| p.sink.as_ref().map(|(_, text)| text.clone());
        self.stages == other.stages
            && self.source == other.source
            && sink(self) == sink(other)
            && self.splits_events == other.splits_events
    }
}

impl std::fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.stages.iter().map(|s| s.text.to_string())).finish()
    }
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
    pub(super) fn parse_only(pipeline: &RawDoc, ctx: &QueryCtx) -> Result<Pipeline> {
        Pipeline::parse_stages(pipeline, ctx, false)
    }
    pub(super) fn parse_stages(pipeline: &RawDoc, ctx: &QueryCtx, forwarded: bool) -> Result<Pipeline> {
        check_size(pipeline)?;
        let mut stages = Vec::new();
        let mut source = PipelineSource::Collection;
        let mut sink: Option<Sink> = None;
        let mut sink_text = DocBuf::new();
        let mut splits_events = false;
        let mut uses = metas::Uses::default();
        let mut variables = BTreeSet::new();
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
                sink_text = spec.to_buf();
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
            p.forwarded = forwarded;
            let first = stages.len();
            let rewritten = registry::rewritten(stage, &p)?;
            for e in rewritten.as_deref().unwrap_or(spec) {
                registry::parse(e, &mut p, &mut stages)?;
            }
            uses.note((at, stage.name()), &p.metas, &mut stages, first)?;
            variables.append(&mut p.variables);
        }
        // Who merges forwarded rows may ask for what no stage here does.
        let (text_score, nearness) = match forwarded {
            true => (uses.has_text(), stages.iter().any(|s| s.near().is_some())),
            false => (uses.text_score(), uses.nearness()),
        };
        let metas::Uses { metas, unsorted, misplaced, .. } = uses;
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

    /// A change stream whose large events are to come in fragments.
    pub fn splits_events(&self) -> bool {
        self.splits_events
    }
    /// `$geoNear` is the find plan, so nothing that does anything may be in front of it.
    pub(super) fn check_near(&self) -> Result<()> {
        let Some(at) = self.stages.iter().rposition(|s| s.near().is_some()) else { return Ok(()) };
        let idle = |s: &Stage| s.filter().is_some_and(RawDoc::is_empty) || s.unpacking().is_some();
        if self.stages[..at].iter().all(idle) { Ok(()) } else { Err(geo_near::misplaced()) }
    }
    /// Why a pipeline cannot run when there is no collection `ns`.
    pub fn needs_collection(&self, ns: &str) -> Result<()> {
        match self.stages.iter().any(|s| s.near().is_some()) {
            true => Err(geo_near::no_collection(ns)),
            false => Ok(()),
        }
    }

    /// 2 when sort keys, 40218 when a text score is asked for and there is no search.
    fn check_metas(&self) -> Result<()> {
        if self.misplaced {
            return Err(Error::bad_value("cannot use sortKey $meta projection without a sort"));
        }
        if self.stages.first().is_none_or(|s| s.near().is_none()) {
            check_nearness(&self.metas)?;
        }
        match self.metas.contains(&MetaField::TextScore) && !self.has_text() {
            true => Err(no_text_score()),
            false => Ok(()),
        }
    }
    /// It begins with a text search.
    pub fn has_text(&self) -> bool {
        self.stages.first().is_some_and(|s| s.has_text())
    }
    /// 27 when it begins with a text search but there is no collection.
    pub fn check_text_without_collection(&self, ns: &Namespace) -> Result<()> {
        if !self.has_text() {
            return Ok(());
        }
        let text = format!("text index required for $text query (no such collection '{ns}')");
        Err(Error::new(ErrorCode::IndexNotFound, text))
    }
    pub(super) fn metas(&self) -> &[MetaField] {
        &self.metas
    }

    pub(super) fn ctx(&self) -> &QueryCtx {
        &self.ctx
    }
    pub fn source(&self) -> &PipelineSource {
        &self.source
    }
    /// Where the results go, if they are not for the caller.
    pub fn take_sink(&mut self) -> Option<Sink> {
        self.sink.take().map(|(sink, _)| sink)
    }
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }
    /// Each stage as explain spells it; `None` for all but the last of those that one specification stands for.
    pub fn explained(&self) -> Vec<Option<DocBuf>> {
        let mut all = self.shown();
        for stage in all.iter_mut().flatten() {
            *stage = spelled::spelled(stage, &self.ctx);
        }
        spelled::join_limits(&mut all);
        all
    }
    /// Which of the stages are shown.
    pub(super) fn is_shown(&self) -> Vec<bool> {
        let mut all = self.shown();
        spelled::join_limits(&mut all);
        all.iter().map(Option::is_some).collect()
    }
    /// Each stage as written, or as it became.
    pub fn shown(&self) -> Vec<Option<DocBuf>> {
        self.stages.iter().map(|s| s.shown(&self.ctx)).collect()
    }
    pub(super) fn add_needs(&self, needs: &mut Needs) {
        add_needs(&self.stages, needs);
    }

    /// Ready to pull.
    pub fn start(self, env: &RunEnv) -> Result<Runner> {
        let nests = self.stages.iter().any(|s| s.may_nest());
        let mut run = Start { env, ctx: &self.ctx, frontier: None };
        let stages = self.stages.into_iter().map(|s| s.start(&mut run)).collect::<Result<Vec<_>>>()?;
        Ok(Runner::new(stages, nests, self.ctx))
    }
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
