//! Candidate plans run against each other for a while; the one that gives most rows per step wins.
//!
//! The winner's signature is kept in the collection's plan cache under the query's shape. The next query of that
//! shape starts with it alone, under a watch: when it takes ten times the steps it took then and still has not
//! filled its trial, the candidates race again.

use super::{Build, Cx, Next, OutRow, Quota, Resources, Stage, StageStats, out_row};
use crate::plan::{PlanNode, Query, Solution, query_shape};
use crate::source::Source;
use pando_base::{Result, limits};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows that end a trial.
const TRIAL_ROWS: usize = 101;
/// Steps each candidate takes in turn.
const TURN_STEPS: u32 = 16;
/// A cached plan may take this many times its remembered steps.
const WATCH_FACTOR: u64 = 10;

pub(super) struct Race {
    query: Arc<Query>,
    resources: Resources,
    runners: Vec<Runner>,
    /// Those that run in this trial; a lone cached plan before all of them.
    field: Vec<usize>,
    turn: usize,
    works_max: u64,
    shape: String,
}

struct Runner {
    solution: Solution,
    /// Built when it first runs.
    root: Option<Box<dyn Stage>>,
    rows: VecDeque<OutRow>,
    works: u64,
    ended: bool,
    failed: Option<pando_base::Error>,
}

pub(super) struct Outcome {
    pub(super) plan: PlanNode,
    pub(super) root: Box<dyn Stage>,
    pub(super) rows: VecDeque<OutRow>,
    pub(super) done: bool,
    pub(super) trial: Option<StageStats>,
    pub(super) rejected: Vec<Rejected>,
}

/// A candidate that lost, and how far it came.
#[derive(Clone, Debug)]
pub struct Rejected {
    pub plan: PlanNode,
    pub stats: StageStats,
}

impl Race {
    pub(super) fn new(
        query: &Arc<Query>,
        candidates: Vec<Solution>,
        src: &dyn Source,
        resources: &Resources,
    ) -> Race {
        let shape = query_shape(query);
        let runners: Vec<Runner> = candidates
            .into_iter()
            .map(|solution| Runner {
                root: None,
                solution,
                rows: VecDeque::new(),
                works: 0,
                ended: false,
                failed: None,
            })
            .collect();
        let all_works = (src.record_count() * 3 / 10).max(limits::PLAN_TRIAL_WORKS_MIN);
        let cached = src.collection().plan_cache.get(&shape);
        let known = cached.and_then(|c| {
            let at = runners.iter().position(|r| r.solution.signature == c.signature)?;
            Some((at, c.works.saturating_mul(WATCH_FACTOR)))
        });
        let (field, works_max) = match known {
            Some((at, watch)) => (vec![at], watch.max(u64::from(TURN_STEPS))),
            None => ((0..runners.len()).collect(), all_works),
        };
        Race { query: query.clone(), resources: resources.clone(), runners, field, turn: 0, works_max, shape }
    }

    /// Runs until a winner can be named (true) or the quota is used up (false).
    pub(super) fn run(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        loop {
            // Everyone gets the same number of turns.
            if self.turn.is_multiple_of(self.field.len()) && self.settled() {
                return Ok(true);
            }
            if self.field.len() == 1 && self.runners[self.field[0]].works >= self.works_max {
                self.start_over(cx.src);
                continue;
            }
            let at = self.field[self.turn % self.field.len()];
            self.turn += 1;
            let runner = &mut self.runners[at];
            if runner.failed.is_some() || runner.ended {
                continue;
            }
            let build = Build { query: &self.query, resources: &self.resources };
            if !runner.step(cx, &build) {
                self.turn -= 1;
                return Ok(false);
            }
        }
    }

    fn settled(&self) -> bool {
        let mut running = self.field.iter().map(|i| &self.runners[*i]);
        let lone = self.field.len() == 1;
        running.any(|r| r.ended || r.rows.len() >= TRIAL_ROWS)
            || self.field.iter().all(|i| {
                let r = &self.runners[*i];
                r.failed.is_some() || (!lone && r.works >= self.works_max)
            })
    }

    /// The cached plan has grown bad: forget it and let all candidates run from the start.
    fn start_over(&mut self, src: &dyn Source) {
        src.collection().plan_cache.remove(&self.shape);
        for r in &mut self.runners {
            r.root = None;
            r.rows.clear();
            r.works = 0;
            r.ended = false;
        }
        self.field = (0..self.runners.len()).collect();
        self.turn = 0;
        self.works_max = (src.record_count() * 3 / 10).max(limits::PLAN_TRIAL_WORKS_MIN);
    }

    pub(super) fn save(&mut self) {
        self.runners.iter_mut().filter_map(|r| r.root.as_mut()).for_each(|root| root.save());
    }

    /// Names the winner; an error only if every candidate failed.
    pub(super) fn finish(mut self, src: &dyn Source) -> Result<Outcome> {
        let best = self
            .field
            .iter()
            .copied()
            .max_by(|a, b| {
                let (x, y) = (self.runners[*a].score(), self.runners[*b].score());
                // On a tie the earlier candidate.
                x.total_cmp(&y).then(b.cmp(a))
            })
            .unwrap_or(0);
        let raced = self.field.len() > 1;
        let winner = self.runners.remove(best);
        if let Some(e) = winner.failed {
            return Err(e);
        }
        let build = Build { query: &self.query, resources: &self.resources };
        let root = winner.root.unwrap_or_else(|| build.stage(&winner.solution.root));
        let trial = raced.then(|| root.stats());
        if raced {
            let shape = std::mem::take(&mut self.shape);
            let info = src.collection();
            let cached =
                crate::plan::explain::cached(&self.query, &shape, &winner.solution, winner.works, info);
            info.plan_cache.put(shape, cached);
        }
        Ok(Outcome {
            plan: winner.solution.root,
            root,
            rows: winner.rows,
            done: winner.ended,
            trial,
            rejected: self.runners.into_iter().map(Rejected::from).collect(),
        })
    }
}

impl From<Runner> for Rejected {
    fn from(r: Runner) -> Rejected {
        let stats = r.root.as_ref().map_or_else(StageStats::default, |root| root.stats());
        Rejected { plan: r.solution.root, stats }
    }
}

impl Runner {
    /// One turn; false when the caller's quota ended it.
    fn step(&mut self, cx: &mut Cx<'_>, build: &Build<'_>) -> bool {
        let mut turn = Quota::new(TURN_STEPS);
        let root = self.root.get_or_insert_with(|| build.stage(&self.solution.root));
        loop {
            let before = turn.left;
            let mut inner = Cx { src: &mut *cx.src, quota: &mut turn, generation: cx.generation };
            let next = root.next(&mut inner);
            self.works += u64::from(before - turn.left);
            match next {
                Ok(Next::Row(row)) => {
                    self.rows.push_back(out_row(row));
                    if self.rows.len() >= TRIAL_ROWS {
                        return true;
                    }
                }
                Ok(Next::Eof) => {
                    self.ended = true;
                    return true;
                }
                Ok(Next::Yield) => {
                    // The steps were taken on the caller's account.
                    return (0..TURN_STEPS).all(|_| cx.quota.tick());
                }
                Err(e) => {
                    self.failed = Some(e);
                    return true;
                }
            }
        }
    }

    /// Rows per step, a bonus for having finished, and small ones for needing less work later.
    fn score(&self) -> f64 {
        if self.failed.is_some() {
            return -1.0;
        }
        let works = self.works.max(1) as f64;
        let productivity = self.rows.len() as f64 / works;
        let epsilon = (1.0 / (10.0 * works)).min(1e-4);
        let plan = &self.solution.root;
        let no_fetch = !plan.any(&|n| matches!(n, PlanNode::Fetch { .. }));
        let no_sort = !plan.has_blocking_sort();
        let bonus = |yes: bool| if yes { epsilon } else { 0.0 };
        1.0 + productivity + bonus(no_fetch) + bonus(no_sort) + if self.ended { 1.0 } else { 0.0 }
    }
}
