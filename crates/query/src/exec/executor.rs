//! A query that is being executed: its candidates race, and the winner runs.

use super::build::Build;
use super::race::{Race, Rejected, Trial};
use super::stage::{Cx, Each, Fed, Next, OutRow, Quota, Resources, Stage, Step, out_row};
use super::stats::StageStats;
use crate::ctx::QueryCtx;
use crate::plan::{PlanNode, Query, Solution, solutions};
use crate::source::Source;
use pando_base::{Result, patience};
use std::sync::Arc;

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
        query.owned = src.owned().cloned();
        if query.owned.is_some() {
            // The first of a group may be another shard's.
            query.firsts = None;
        }
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
