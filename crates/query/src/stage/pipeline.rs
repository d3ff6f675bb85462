//! A parsed pipeline: stages as data, between where documents come from and where results go.

use super::geo_near;
use super::needs::Needs;
use super::runner::Runner;
use super::running::{RunEnv, Start};
use super::sinks::Sink;
use super::sources::PipelineSource;
use super::spec::{Stage, add_needs};
use crate::ctx::QueryCtx;
use crate::facts::MetaField;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_bson::DocBuf;
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
    /// A change stream whose large events are to come in fragments.
    pub fn splits_events(&self) -> bool {
        self.splits_events
    }
    /// Why a pipeline cannot run when there is no collection `ns`.
    pub fn needs_collection(&self, ns: &str) -> Result<()> {
        match self.stages.iter().any(|s| s.near().is_some()) {
            true => Err(geo_near::no_collection(ns)),
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
    pub fn sink(&self) -> Option<&Sink> {
        self.sink.as_ref().map(|(sink, _)| sink)
    }
    /// Where the results go, if they are not for the caller.
    pub fn take_sink(&mut self) -> Option<Sink> {
        self.sink.take().map(|(sink, _)| sink)
    }
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
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
