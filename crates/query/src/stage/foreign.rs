//! Other collections, as joining stages read them.
//!
//! A [`Foreign`] stands for one collection (or what is below a view) for the time of a run. It opens a snapshot
//! when something is read and lets go of it on [`Foreign::save`]; a [`Sub`] is one run of a pipeline over it.

use super::collections::{Collections, Examined, Opened, Target};
use super::conditions;
use super::join_stats::JoinStats;
use super::pipeline::Pipeline;
use super::row::Row;
use super::runner::Runner;
use super::running::{RunEnv, Start};
use super::sources::PipelineSource;
use super::step::{Input, Step};
use crate::ctx::QueryCtx;
use crate::exec::{self, Executor, Quota, Resources};
use crate::matcher::Matcher;
use crate::plan::Query;
use crate::source::{CollectionInfo, Source};
use bytes::Bytes;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{ArrayBuilder, DocBuf, RawDoc};
use std::sync::Arc;

/// Steps of a plan between two chances for others to run.
const STEPS_PER_TURN: u32 = 1024;
/// The bytes of `{}`: a row of a plan that only counts.
const EMPTY_DOC: &[u8] = &[5, 0, 0, 0, 0];

pub(super) struct Foreign {
    env: RunEnv,
    collections: Arc<dyn Collections>,
    pub(super) target: Target,
    opened: Option<Opened>,
    /// Shared by all runs, so that many short ones yield as one long one does.
    quota: Quota,
    pub(super) stats: JoinStats,
    /// What of it the collections know.
    told: Examined,
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.tell();
    }
}

impl Foreign {
    pub(super) fn new(run: &Start<'_>, name: &str) -> Result<Foreign> {
        let (env, ctx) = (run.env, run.ctx);
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
        let told = Examined::default();
        Ok(Foreign { env: env.clone(), collections, target, opened: None, quota, stats, told })
    }
    pub(super) fn save(&mut self) {
        self.opened = None;
        self.tell();
    }
    fn tell(&mut self) {
        let now = self.stats.examined();
        if now != self.told {
            self.collections.was_read(&Examined {
                docs: now.docs - self.told.docs,
                keys: now.keys - self.told.keys,
                collection_scans: now.collection_scans - self.told.collection_scans,
            });
            self.told = now;
        }
    }
    /// Opens the collection unless it is open; false when that takes a while.
    pub(super) fn open(&mut self) -> Result<bool> {
        if self.opened.is_none() {
            match self.collections.open(&self.target.ns)? {
                Opened::NotYet => return Ok(false),
                opened => self.opened = Some(opened),
            }
        }
        Ok(true)
    }
    /// It lies on other nodes. (As all that follows: once it is open.)
    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self.opened, Some(Opened::Elsewhere(_)))
    }
    /// The collection as it is now; `None` when there is none here.
    pub(super) fn info(&self) -> Option<Arc<CollectionInfo>> {
        match &self.opened {
            Some(Opened::Here(source)) => Some(source.collection().clone()),
            _ => None,
        }
    }
    pub(super) fn source(&mut self) -> Option<&mut dyn Source> {
        match &mut self.opened {
            Some(Opened::Here(source)) => Some(&mut **source),
            _ => None,
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
    /// Starts a pipeline; `None` when the collection cannot be opened yet.
    pub(super) fn run(&mut self, mut pipeline: Pipeline) -> Result<Option<Sub>> {
        if let PipelineSource::Documents(docs) = pipeline.source() {
            let docs = docs.eval(pipeline.ctx())?.into_iter();
            return Ok(Some(Sub { runner: Some(pipeline.start(&self.env)?), feed: Feed::Docs(docs) }));
        }
        if !self.open()? {
            return Ok(None);
        }
        if let Some(Opened::Elsewhere(nodes)) = &mut self.opened {
            let rows = nodes.run(&pipeline.spelled(), pipeline.ctx())?;
            return Ok(Some(Sub { runner: None, feed: Feed::Rows(rows) }));
        }
        let feed = match (pipeline.source(), &mut self.opened) {
            (PipelineSource::Collection, Some(Opened::Here(source))) => {
                let find = pipeline.take_find();
                let query = find.into_query(&self.target.ns, source.collection(), pipeline.ctx(), None)?;
                Feed::plan(query, &**source, self.env.spill.clone())?
            }
            (PipelineSource::Collection, _) => {
                pipeline.needs_collection(&self.target.ns)?;
                Feed::Docs(Vec::new().into_iter())
            }
            (about, _) => match self.collections.about(&self.target.ns, about)? {
                Some(docs) => Feed::Docs(docs.into_iter()),
                None => return Err(Error::internal("a first stage that no sub-pipeline may have")),
            },
        };
        Ok(Some(Sub { runner: Some(pipeline.start(&self.env)?), feed }))
    }
    /// Starts a filter without stages above it; `None` when the collection cannot be opened yet.
    pub(super) fn run_filter(&mut self, matcher: Arc<Matcher>, q: &QueryCtx) -> Result<Option<Sub>> {
        if !self.open()? {
            return Ok(None);
        }
        let feed = match &mut self.opened {
            Some(Opened::Here(source)) => {
                let query = Query::new(&self.target.ns, matcher, q.clone());
                Feed::plan(query, &**source, self.env.spill.clone())?
            }
            Some(Opened::Elsewhere(nodes)) => {
                let mut stages = ArrayBuilder::new();
                stages.raw_doc(&conditions::text(matcher.filter()));
                Feed::Rows(nodes.run(&stages.finish(), q)?)
            }
            _ => Feed::Docs(Vec::new().into_iter()),
        };
        Ok(Some(Sub { runner: None, feed }))
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
    /// What other nodes send.
    Rows(Box<dyn Input + Send>),
}

impl Feed {
    fn plan(
        query: Query,
        source: &dyn Source,
        spill: Option<Arc<dyn crate::sort::SpillSpace>>,
    ) -> Result<Feed> {
        let resources = Resources { spill };
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
            Feed::Rows(rows) => rows.next()?,
            Feed::Plan(..) if !foreign.open()? => Step::NeedYield,
            Feed::Plan(exec, info) => {
                let opened = match &mut foreign.opened {
                    Some(Opened::Here(source)) => Some(source),
                    _ => None,
                };
                let Some(source) = opened.filter(|s| Arc::ptr_eq(s.collection(), info)) else {
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
