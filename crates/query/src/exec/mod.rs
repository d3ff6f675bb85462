//! The executor: pulls rows through a plan's stages, stops when its quota is used up, and can be put away.
//!
//! ```text
//!   next(source, quota) ──► Project ─► Sort ─► Fetch ─► IxScan ─► source cursor
//!        Row / NeedYield / Eof          ▲ keeps what it has collected across yields
//! ```
//!
//! * A stage is asked for its next row and answers with a row, "out of quota" or "end". Out of quota unwinds
//!   the whole stack; the next call goes on where it stopped.
//! * The caller owns the [`Source`]. It may hand in the same one again, or [`Executor::save`] first and come
//!   back later with another one at a newer snapshot (`getMore`, or a yield): scans then reopen their
//!   cursors after the last entry they consumed. Rows that a blocking stage kept from before are checked
//!   against the filter again when their documents are fetched.
//! * With several candidate plans the first calls let them race ([`race`]); what the winner has found
//!   meanwhile is kept.

mod combine;
mod distinct;
mod flow;
mod near;
mod race;
mod record_set;
mod scan;
mod sort;
pub mod stats;
mod text;

pub use race::{Rejected, Trial};
pub use stats::StageStats;

use crate::ctx::QueryCtx;
use crate::facts::Facts;
use crate::plan::{PlanNode, Query, Solution, solutions};
use crate::source::{RecordId, Source};
use bytes::Bytes;
use pando_base::{Result, patience};
use race::Race;
use std::sync::Arc;

/// Steps a call may take before it returns [`Step::NeedYield`].
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    left: u32,
}

impl Quota {
    pub fn new(steps: u32) -> Quota {
        Quota { left: steps }
    }
    /// Counts work that is more than a row's.
    pub(crate) fn spend(&mut self, steps: u32) {
        self.left = self.left.saturating_sub(steps);
    }
    /// A document is looked at: as much as many steps when it is large.
    #[inline]
    pub(crate) fn spend_document(&mut self, bytes: usize) {
        self.spend((bytes >> 14) as u32);
    }
    #[inline]
    pub(crate) fn tick(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }
}

/// What a call gave.
#[derive(Debug)]
pub enum Step {
    Row(OutRow),
    /// The quota is used up; call again.
    NeedYield,
    /// Nothing more. A tailable scan may have more later.
    Eof,
}

/// A row of the result.
#[derive(Clone, Debug, Default)]
pub struct OutRow {
    /// The document, projected if the query says so. Empty when only counting.
    pub doc: Bytes,
    pub rid: Option<RecordId>,
    pub facts: Option<Box<Facts>>,
}

/// A row between stages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) rid: Option<RecordId>,
    pub(crate) doc: Option<Bytes>,
    pub(crate) key: Option<Box<KeyData>>,
    /// [`Cx::generation`] when the row was made.
    pub(crate) generation: u32,
    pub(crate) facts: Option<Box<Facts>>,
}

/// An index entry's key.
#[derive(Clone, Debug)]
pub(crate) struct KeyData {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) type_bits: Box<[u8]>,
    pub(crate) directions: pando_bson::keystring::Directions,
}

/// What a stage works with during one call.
pub(crate) struct Cx<'a> {
    pub(crate) src: &'a mut dyn Source,
    pub(crate) quota: &'a mut Quota,
    /// Counts [`Executor::save`] calls: rows of an older generation may be out of date.
    pub(crate) generation: u32,
}

pub(crate) enum Next {
    Row(Row),
    Yield,
    Eof,
}

/// Takes in one document after the other; false when it wants no more.
pub type Each<'a> = dyn FnMut(&[u8]) -> Result<bool> + 'a;

/// Why [`Executor::feed`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fed {
    /// The quota is used up; call again.
    NeedYield,
    /// No more is wanted.
    Stopped,
    Eof,
}

pub(crate) trait Stage: Send {
    fn next(&mut self, cx: &mut Cx<'_>) -> Result<Next>;
    /// Shows the documents of all rows to come, as far as the quota goes. A scan shows them where they lie.
    fn feed(&mut self, cx: &mut Cx<'_>, each: &mut Each<'_>) -> Result<Fed> {
        loop {
            match self.next(cx)? {
                Next::Row(row) if each(row.doc.as_deref().unwrap_or_default())? => {}
                Next::Row(_) => return Ok(Fed::Stopped),
                Next::Yield => return Ok(Fed::NeedYield),
                Next::Eof => return Ok(Fed::Eof),
            }
        }
    }
    /// Drops everything tied to the present snapshot.
    fn save(&mut self);
    fn stats(&self) -> StageStats;
}

/// Memory and disk a query may use.
#[derive(Clone)]
pub struct Resources {
    /// For one blocking sort.
    pub sort_bytes_max: usize,
    /// `None`: exceeding the memory is an error.
    pub spill: Option<Arc<dyn crate::sort::SpillSpace>>,
}

impl Default for Resources {
    fn default() -> Resources {
        Resources { sort_bytes_max: pando_base::limits::SORT_MEMORY_BYTES_MAX, spill: None }
    }
}

/// What building one of many stages takes.
const STAGE_STEPS: usize = 20;

/// What building stages needs to know.
pub(crate) struct Build<'a> {
    pub(crate) query: &'a Query,
    pub(crate) resources: &'a Resources,
}

impl Build<'_> {
    /// All inputs of a stage, or as many as there is time for.
    fn stages(&self, nodes: &[PlanNode]) -> Vec<Box<dyn Stage>> {
        nodes.iter().take_while(|_| !patience::is_over(STAGE_STEPS)).map(|n| self.stage(n)).collect()
    }
    pub(crate) fn stage(&self, node: &PlanNode) -> Box<dyn Stage> {
        match node {
            PlanNode::CollScan(c) => Box::new(scan::CollScanStage::new(c.clone())),
            PlanNode::IdHack { key } => Box::new(scan::IdHackStage::new(key.clone())),
            PlanNode::IxScan(s) => Box::new(scan::IxScanStage::new(s.clone())),
            PlanNode::GeoNear(n) => Box::new(near::NearStage::new(n.clone(), self.query.matcher.clone())),
            PlanNode::DistinctScan(s) => Box::new(distinct::DistinctStage::new(s.clone())),
            PlanNode::Fetch { input, filter } => {
                let recheck = (!self.query.matcher.is_trivial()).then(|| self.query.matcher.clone());
                Box::new(flow::FetchStage::new(self.stage(input), filter.clone(), recheck))
            }
            PlanNode::TextMatch(t) => {
                Box::new(text::TextMatchStage::new(self.stage(&t.input), t.meaning.clone()))
            }
            PlanNode::TextOr { inputs, filter, key_fields } => {
                Box::new(text::TextOrStage::new(self.stages(inputs), filter.clone(), key_fields.clone()))
            }
            PlanNode::KeyOr { inputs, filter, key_fields } => {
                let filtered = |n| {
                    let stage = text::KeyFilterStage::new(self.stage(n), filter.clone(), key_fields.clone());
                    Box::new(stage) as Box<dyn Stage>
                };
                Box::new(combine::OrStage::new(inputs.iter().map(filtered).collect()))
            }
            PlanNode::Or { inputs } => Box::new(combine::OrStage::new(self.stages(inputs))),
            PlanNode::SortMerge { inputs, keys, pattern, dedup } => {
                Box::new(combine::MergeStage::new(self.stages(inputs), keys.clone(), pattern, *dedup))
            }
            PlanNode::Sort { input, pattern, limit, keys } => Box::new(sort::SortStage::new(
                self.stage(input),
                pattern.clone(),
                keys.clone(),
                *limit,
                self.query.ctx.collation.clone(),
                self.resources,
            )),
            PlanNode::SortKeyGenerator { input, .. } | PlanNode::Reads { input, .. } => self.stage(input),
            PlanNode::Skip { input, n } => Box::new(flow::SkipStage::new(self.stage(input), *n)),
            PlanNode::Limit { input, n } => Box::new(flow::LimitStage::new(self.stage(input), *n)),
            PlanNode::Project { input, projection, key_fields, .. } => Box::new(flow::ProjectStage::new(
                self.stage(input),
                projection.clone(),
                key_fields.clone(),
                self.query,
            )),
            PlanNode::ReturnKey { input, fields } => {
                Box::new(flow::ReturnKeyStage::new(self.stage(input), fields.clone()))
            }
            PlanNode::Eof => Box::new(flow::EofStage::default()),
        }
    }
}

/// A query being executed.
pub struct Executor {
    query: Arc<Query>,
    resources: Resources,
    state: State,
    generation: u32,
    /// The winner at the end of the trial.
    trial: Option<Trial>,
    rejected: Vec<Rejected>,
    replanned: Option<String>,
}

enum State {
    Racing(Box<Race>),
    Running {
        plan: PlanNode,
        root: Box<dyn Stage>,
        buffered: std::collections::VecDeque<OutRow>,
        done: bool,
    },
    /// Only while the race is being settled.
    Settling,
}

impl Executor {
    pub fn ctx(&self) -> &QueryCtx {
        &self.query.ctx
    }
    /// Plans the query against the source's collection.
    // tour: find 5/9
    pub fn new(mut query: Query, src: &dyn Source, resources: Resources) -> Result<Executor> {
        query.resolve_text(src.collection())?;
        let candidates = solutions(&query, src.collection())?;
        patience::check()?;
        Ok(Executor::with_solutions(query, candidates, src, resources))
    }

    /// Runs one given plan.
    pub fn with_plan(query: Query, plan: PlanNode, resources: Resources) -> Executor {
        let query = Arc::new(query);
        let root = Build { query: &query, resources: &resources }.stage(&plan);
        let state = State::Running { plan, root, buffered: Default::default(), done: false };
        Executor {
            query,
            resources,
            state,
            generation: 0,
            trial: None,
            rejected: Vec::new(),
            replanned: None,
        }
    }

    fn with_solutions(
        query: Query,
        mut candidates: Vec<Solution>,
        src: &dyn Source,
        resources: Resources,
    ) -> Executor {
        if candidates.len() == 1
            && let Some(only) = candidates.pop()
        {
            return Executor::with_plan(query, only.root, resources);
        }
        let query = Arc::new(query);
        let race = Race::new(&query, candidates, src, &resources);
        Executor {
            query,
            resources,
            state: State::Racing(Box::new(race)),
            generation: 0,
            trial: None,
            rejected: Vec::new(),
            replanned: None,
        }
    }

    pub fn query(&self) -> &Arc<Query> {
        &self.query
    }

    /// The next row.
    pub fn next(&mut self, src: &mut dyn Source, quota: &mut Quota) -> Result<Step> {
        let step = self.next_step(src, quota)?;
        // What was given up half-way looks like an end.
        patience::check()?;
        Ok(step)
    }

    fn next_step(&mut self, src: &mut dyn Source, quota: &mut Quota) -> Result<Step> {
        loop {
            let mut cx = Cx { src: &mut *src, quota: &mut *quota, generation: self.generation };
            match &mut self.state {
                State::Running { root, buffered, done, .. } => {
                    if let Some(row) = buffered.pop_front() {
                        return Ok(Step::Row(row));
                    }
                    if *done {
                        return Ok(Step::Eof);
                    }
                    return Ok(match root.next(&mut cx)? {
                        Next::Row(row) => Step::Row(out_row(row)),
                        Next::Yield => Step::NeedYield,
                        Next::Eof => {
                            *done = !self.query.tailable;
                            Step::Eof
                        }
                    });
                }
                State::Racing(race) => {
                    if !race.run(&mut cx)? {
                        return Ok(Step::NeedYield);
                    }
                    self.settle(src)?;
                }
                State::Settling => return Ok(Step::Eof),
            }
        }
    }

    /// Shows the documents of the rows to come to `each` without handing them out.
    pub fn feed(&mut self, src: &mut dyn Source, quota: &mut Quota, each: &mut Each<'_>) -> Result<Fed> {
        loop {
            if let State::Running { root, buffered, done: done @ false, .. } = &mut self.state
                && buffered.is_empty()
            {
                let fed = root.feed(&mut Cx { src, quota, generation: self.generation }, each)?;
                patience::check()?;
                *done = fed == Fed::Eof && !self.query.tailable;
                return Ok(fed);
            }
            match self.next(src, quota)? {
                Step::Row(row) if each(&row.doc)? => {}
                Step::Row(_) => return Ok(Fed::Stopped),
                Step::NeedYield => return Ok(Fed::NeedYield),
                Step::Eof => return Ok(Fed::Eof),
            }
        }
    }

    /// Runs the trial between candidates, if there is one; true when the plan is settled.
    pub fn settle_plan(&mut self, src: &mut dyn Source, quota: &mut Quota) -> Result<bool> {
        let State::Racing(race) = &mut self.state else { return Ok(true) };
        let mut cx = Cx { src: &mut *src, quota, generation: self.generation };
        if !race.run(&mut cx)? {
            return Ok(false);
        }
        self.settle(src)?;
        Ok(true)
    }

    fn settle(&mut self, src: &dyn Source) -> Result<()> {
        if let State::Racing(race) = std::mem::replace(&mut self.state, State::Settling) {
            let outcome = race.finish(src)?;
            self.rejected = outcome.rejected;
            self.trial = outcome.trial;
            self.replanned = outcome.replanned;
            self.state = State::Running {
                plan: outcome.plan,
                root: outcome.root,
                buffered: outcome.rows,
                done: outcome.done,
            };
        }
        Ok(())
    }

    /// Lets go of the present snapshot; the next call may bring another source.
    pub fn save(&mut self) {
        self.generation += 1;
        match &mut self.state {
            State::Running { root, .. } => root.save(),
            State::Racing(race) => race.save(),
            State::Settling => {}
        }
    }

    /// The plan in use; `None` while candidates are still racing.
    pub fn plan(&self) -> Option<&PlanNode> {
        match &self.state {
            State::Running { plan, .. } => Some(plan),
            _ => None,
        }
    }
    /// Candidates that lost.
    pub fn rejected(&self) -> &[Rejected] {
        &self.rejected
    }
    /// Counters of the plan in use, shaped like it.
    pub fn stats(&self) -> StageStats {
        match &self.state {
            State::Running { root, .. } => root.stats(),
            _ => StageStats::default(),
        }
    }
    /// The winner at the end of the trial; `None` if there was no trial.
    pub fn trial(&self) -> Option<&Trial> {
        self.trial.as_ref()
    }
    /// Why a cached plan was given up.
    pub fn replanned(&self) -> Option<&str> {
        self.replanned.as_deref()
    }
    pub fn resources(&self) -> &Resources {
        &self.resources
    }
}

pub(crate) fn out_row(row: Row) -> OutRow {
    OutRow { doc: row.doc.unwrap_or_default(), rid: row.rid, facts: row.facts }
}

#[cfg(test)]
mod tests;
