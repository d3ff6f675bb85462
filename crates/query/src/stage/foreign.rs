//! Other collections, as joining stages read them.
//!
//! A [`Foreign`] stands for one collection (or what is below a view) for the time of a run. It opens a snapshot
//! when something is read and lets go of it on [`Foreign::save`]; a [`Sub`] is one run of a pipeline over it.

use super::{Input, Pipeline, PipelineSource, Row, RunEnv, Runner, Step};
use crate::collation::Collation;
use crate::ctx::QueryCtx;
use crate::exec::{self, Executor, Quota, Resources};
use crate::plan::{PlanNode, Query};
use crate::source::{CollectionInfo, Source};
use bytes::Bytes;
use pando_base::limits::SUB_PIPELINE_DEPTH_MAX;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{ArrayBuilder, DocBuf, RawDoc};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The collections of a server, all read as of the same point.
pub trait Collections: Send + Sync {
    /// What a name stands for now.
    fn resolve(&self, ns: &str) -> Result<Target>;
    /// What a first stage about the collection says; `None` for stages that do not go into a sub-pipeline.
    fn about(&self, _ns: &str, _stage: &PipelineSource) -> Result<Option<Vec<DocBuf>>> {
        Ok(None)
    }
    /// `None` when there is no such collection.
    fn open(&self, ns: &str) -> Result<Option<Box<dyn Source>>>;
}

/// A collection, and the stages of the view that was named if one was.
#[derive(Clone, Debug)]
pub struct Target {
    pub ns: String,
    /// An array of stages.
    pub view: Option<DocBuf>,
    /// The view's.
    pub collation: Option<Arc<Collation>>,
}

/// Steps of a plan between two chances for others to run.
const STEPS_PER_TURN: u32 = 1024;
/// The bytes of `{}`: a row of a plan that only counts.
const EMPTY_DOC: &[u8] = &[5, 0, 0, 0, 0];

pub(super) struct Foreign {
    env: RunEnv,
    collections: Arc<dyn Collections>,
    pub(super) target: Target,
    source: Option<Box<dyn Source>>,
    /// Shared by all runs, so that many short ones yield as one long one does.
    quota: Quota,
    pub(super) stats: JoinStats,
}

/// What was read of another collection.
#[derive(Clone, Debug, Default)]
pub struct JoinStats {
    pub docs: u64,
    pub keys: u64,
    pub collection_scans: u64,
    pub indexes: BTreeSet<String>,
}

impl JoinStats {
    /// Adds a plan that has run.
    fn add(&mut self, exec: &Executor, info: &CollectionInfo) {
        let stats = exec.stats();
        self.docs += stats.total_docs_examined();
        self.keys += stats.total_keys_examined();
        if let Some(plan) = exec.plan() {
            self.add_scans(plan, info);
        }
    }
    /// Adds documents found through an index without a plan.
    pub(super) fn add_probe(&mut self, found: u64, index: &str) {
        self.keys += found;
        self.docs += found;
        if !self.indexes.contains(index) {
            self.indexes.insert(index.to_owned());
        }
    }
    fn add_scans(&mut self, plan: &PlanNode, info: &CollectionInfo) {
        let index = match plan {
            PlanNode::CollScan(_) => {
                self.collection_scans += 1;
                None
            }
            PlanNode::IdHack { .. } => info.indexes.iter().position(|i| i.is_id_index()),
            PlanNode::IxScan(s) => Some(s.index),
            PlanNode::DistinctScan(d) => Some(d.scan.index),
            PlanNode::GeoNear(n) => Some(n.index),
            _ => None,
        };
        if let Some(i) = index.and_then(|i| info.indexes.get(i)) {
            self.indexes.insert(i.name.clone());
        }
        plan.inputs().iter().for_each(|n| self.add_scans(n, info));
    }
}

impl Foreign {
    pub(super) fn new(env: &RunEnv, ctx: &QueryCtx, name: &str) -> Result<Foreign> {
        let collections =
            env.collections.clone().ok_or_else(|| Error::internal("no other collections here"))?;
        let target = collections.resolve(&format!("{}.{name}", ctx.vars.db))?;
        if target.view.is_some() && target.collation != ctx.collation {
            return Err(Error::new(
                ErrorCode::OptionNotSupportedOnView,
                format!("Cannot override a view's default collation{}.{name}", ctx.vars.db),
            ));
        }
        let quota = Quota::new(STEPS_PER_TURN);
        let stats = JoinStats::default();
        Ok(Foreign { env: env.clone(), collections, target, source: None, quota, stats })
    }
    pub(super) fn save(&mut self) {
        self.source = None;
    }
    /// The collection as it is now; `None` when there is none.
    pub(super) fn info(&mut self) -> Result<Option<Arc<CollectionInfo>>> {
        Ok(self.source()?.map(|s| s.collection().clone()))
    }
    pub(super) fn source(&mut self) -> Result<Option<&mut dyn Source>> {
        if self.source.is_none() {
            self.source = self.collections.open(&self.target.ns)?;
        }
        match &mut self.source {
            Some(source) => Ok(Some(&mut **source)),
            None => Ok(None),
        }
    }
    /// The view's stages followed by these.
    pub(super) fn stages<'p>(&self, lists: impl IntoIterator<Item = &'p RawDoc>) -> DocBuf {
        let mut all = ArrayBuilder::new();
        let mut put = |list: &RawDoc| {
            for stage in list {
                all.value(stage.value());
            }
        };
        if let Some(view) = &self.target.view {
            put(view);
        }
        lists.into_iter().for_each(put);
        all.finish()
    }
    /// Starts a pipeline.
    pub(super) fn run(&mut self, mut pipeline: Pipeline) -> Result<Sub> {
        let from = match pipeline.source() {
            PipelineSource::Documents(docs) => Feed::Docs(docs.eval(&pipeline.ctx)?.into_iter()),
            PipelineSource::Collection => {
                let ns = self.target.ns.clone();
                let spill = self.env.spill.clone();
                match self.source()? {
                    None => {
                        pipeline.needs_collection(&ns)?;
                        Feed::Docs(Vec::new().into_iter())
                    }
                    Some(source) => {
                        let find = pipeline.take_find();
                        let q = pipeline.ctx.clone();
                        let query = find.into_query(&ns, source.collection(), &q, None)?;
                        Feed::plan(query, source, spill)?
                    }
                }
            }
            about => match self.collections.about(&self.target.ns, about)? {
                Some(docs) => Feed::Docs(docs.into_iter()),
                None => return Err(Error::internal("a first stage that no sub-pipeline may have")),
            },
        };
        Ok(Sub { runner: Some(pipeline.start(&self.env)?), feed: from })
    }
    /// Starts a query without stages above it.
    pub(super) fn run_query(&mut self, query: impl FnOnce(&str) -> Query) -> Result<Sub> {
        let query = query(&self.target.ns);
        let spill = self.env.spill.clone();
        let from = match self.source()? {
            None => Feed::Docs(Vec::new().into_iter()),
            Some(source) => Feed::plan(query, source, spill)?,
        };
        Ok(Sub { runner: None, feed: from })
    }
}

/// One run of a pipeline.
pub(super) struct Sub {
    /// `None`: the rows of the plan are the results.
    runner: Option<Runner>,
    feed: Feed,
}

enum Feed {
    /// With what the collection was when it was planned.
    Plan(Box<Executor>, Arc<CollectionInfo>),
    Docs(std::vec::IntoIter<DocBuf>),
}

impl Feed {
    fn plan(
        query: Query,
        source: &dyn Source,
        spill: Option<Arc<dyn crate::sort::SpillSpace>>,
    ) -> Result<Feed> {
        let resources = Resources { spill, ..Resources::default() };
        let exec = Executor::new(query, source, resources)?;
        Ok(Feed::Plan(Box::new(exec), source.collection().clone()))
    }
}

struct PlanRows<'a> {
    exec: &'a mut Executor,
    source: &'a mut dyn Source,
    quota: &'a mut Quota,
}

impl Input for PlanRows<'_> {
    fn next(&mut self) -> Result<Step> {
        Ok(match self.exec.next(self.source, self.quota)? {
            exec::Step::Row(row) if row.doc.is_empty() => Step::Row(Row::new(Bytes::from_static(EMPTY_DOC))),
            exec::Step::Row(row) => Step::Row(Row::new(row.doc).with_facts(row.facts)),
            exec::Step::NeedYield => Step::NeedYield,
            exec::Step::Eof => Step::Eof,
        })
    }
}

impl Sub {
    pub(super) fn next(&mut self, foreign: &mut Foreign) -> Result<Step> {
        let mut failed = false;
        let step = match &mut self.feed {
            Feed::Docs(docs) => match &mut self.runner {
                Some(runner) => runner.pull(&mut docs.map(Row::from), &mut failed)?,
                None => docs.next().map_or(Step::Eof, |d| Step::Row(d.into())),
            },
            Feed::Plan(exec, info) => {
                foreign.source()?;
                let source = foreign.source.as_mut().filter(|s| Arc::ptr_eq(s.collection(), info));
                let Some(source) = source else {
                    return Err(Error::new(
                        ErrorCode::QueryPlanKilled,
                        format!("the collection {} was changed or dropped meanwhile", foreign.target.ns),
                    ));
                };
                let mut rows = PlanRows { exec, source: &mut **source, quota: &mut foreign.quota };
                let step = match &mut self.runner {
                    Some(runner) => runner.pull(&mut rows, &mut failed)?,
                    None => rows.next()?,
                };
                if matches!(step, Step::Eof) {
                    foreign.stats.add(exec, info);
                }
                step
            }
        };
        if matches!(step, Step::NeedYield) {
            foreign.quota = Quota::new(STEPS_PER_TURN);
        }
        Ok(step)
    }
    /// Lets go of the snapshot; call [`Foreign::save`] as well.
    pub(super) fn save(&mut self) {
        if let Feed::Plan(exec, _) = &mut self.feed {
            exec.save();
        }
        if let Some(runner) = &mut self.runner {
            runner.save();
        }
    }
}

/// The context inside a sub-pipeline; 232 when that is too deep.
pub(super) fn deeper(ctx: &QueryCtx) -> Result<QueryCtx> {
    let mut inner = ctx.clone();
    let vars = Arc::make_mut(&mut inner.vars);
    vars.depth += 1;
    if vars.depth > SUB_PIPELINE_DEPTH_MAX {
        return Err(Error::new(
            ErrorCode::MaxSubPipelineDepthExceeded,
            format!("Maximum number of nested sub-pipelines exceeded. Limit is {SUB_PIPELINE_DEPTH_MAX}"),
        ));
    }
    Ok(inner)
}

/// An array of objects, as sub-pipelines are given.
pub(super) fn stages_array<'v>(v: pando_bson::Value<'v>) -> Result<&'v RawDoc> {
    use pando_bson::Value;
    let Value::Array(stages) = v else {
        return Err(Error::type_mismatch("'pipeline' option must be specified as an array"));
    };
    if stages.iter().any(|s| !matches!(s.value(), Value::Document(_))) {
        return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
    }
    Ok(stages)
}

/// The pipeline starts with `$documents`, so it reads no collection.
pub(super) fn starts_with_documents(stages: &RawDoc) -> bool {
    let first = stages.iter().next().and_then(|s| s.value().as_doc()?.first());
    first.is_some_and(|e| e.name() == "$documents")
}

/// Refuses stages that write or read what is no collection.
pub(super) fn refuse_stages(stages: &RawDoc, code: i32, stage: &str) -> Result<()> {
    for s in stages {
        let Some(name) = s.value().as_doc().and_then(|d| d.first()).map(|e| e.name()) else { continue };
        refuse_elsewhere(name)?;
        // A change stream is told by the first of the stages that it stands for.
        let shown = if name == "$changeStream" { "$_internalChangeStreamOplogMatch" } else { name };
        if super::sinks::is_sink(name) || name == "$changeStream" {
            return Err(Error::location(
                code,
                format!("{shown} is not allowed within a {stage}'s sub-pipeline"),
            ));
        }
    }
    Ok(())
}

/// Stages that are for one special namespace, where no sub-pipeline is.
pub(super) fn refuse_elsewhere(name: &str) -> Result<()> {
    let text = match name {
        "$currentOp" => "$currentOp must be run against the 'admin' database with {aggregate: 1}",
        "$listSessions" => "$listSessions may only be run against config.system.sessions",
        "$listLocalSessions" => {
            "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection"
        }
        _ => return Ok(()),
    };
    Err(Error::new(ErrorCode::InvalidNamespace, text))
}
