//! Candidate plans run against each other for a while; the one that gives most rows per step wins.
//!
//! The winner's signature is kept in the collection's plan cache under the query's shape. Once it has won twice, the
//! next query of that shape starts with it alone, under a watch: when it takes ten times the steps it took then and
//! still has not filled its trial, the candidates race again.

use super::build::Build;
use super::stage::{Cx, Next, OutRow, Quota, Resources, Stage, out_row};
use super::stats::StageStats;
use crate::plan::{PlanNode, Query, Solution, cache_key, explain};
use crate::source::Source;
use pando_base::{Result, limits};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows that end a trial.
const TRIAL_ROWS: usize = 101;
/// Steps each candidate takes in turn.
const TURN_STEPS: u32 = 1;
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
    key: String,
    /// Why the cached plan was given up.
    replanned: Option<String>,
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

pub(super) struct RaceResult {
    pub(super) plan: PlanNode,
    pub(super) root: Box<dyn Stage>,
    pub(super) rows: VecDeque<OutRow>,
    pub(super) done: bool,
    pub(super) trial: Option<Trial>,
    pub(super) rejected: Vec<Rejected>,
    pub(super) replanned: Option<String>,
}

/// How a candidate did in the race.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    pub stats: StageStats,
    pub score: f64,
}

/// A candidate that lost, and how far it came.
#[derive(Clone, Debug)]
pub struct Rejected {
    pub plan: PlanNode,
    pub trial: Trial,
}

impl Race {
    pub(super) fn new(
        query: &Arc<Query>,
        candidates: Vec<Solution>,
        src: &dyn Source,
        resources: &Resources,
    ) -> Race {
        let key = cache_key(query);
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
        let cached = src.collection().plan_cache.get(&key).filter(|c| c.active && !query.explained);
        let known = cached.and_then(|c| {
            let at = runners.iter().position(|r| r.solution.signature == c.signature)?;
            Some((at, c.works.saturating_mul(WATCH_FACTOR)))
        });
        let (field, works_max) = match known {
            Some((at, watch)) => (vec![at], watch.max(u64::from(TURN_STEPS))),
            None => ((0..runners.len()).collect(), all_works),
        };
        Race {
            query: query.clone(),
            resources: resources.clone(),
            runners,
            field,
            turn: 0,
            works_max,
            key,
            replanned: None,
        }
    }

    /// Runs until a winner can be named (true) or the quota is used up (false).
    pub(super) fn run(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        loop {
            // Everyone gets the same number of turns.
            if self.turn.is_multiple_of(self.field.len()) && self.settled() {
                return Ok(true);
            }
            if let Some(why) = self.disappointment() {
                self.start_over(cx.src, why);
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

    /// Why the cached plan that runs alone is not worth going on with.
    fn disappointment(&self) -> Option<String> {
        let [lone] = self.field[..] else { return None };
        let Runner { works, failed, .. } = &self.runners[lone];
        if let Some(e) = failed {
            return Some(format!("cached plan returned: {e}"));
        }
        (*works >= self.works_max).then(|| {
            format!(
                "cached plan was less efficient than expected: expected trial execution to take {} works but it took \
                 at least {works} works",
                self.works_max / WATCH_FACTOR
            )
        })
    }

    fn settled(&self) -> bool {
        let mut running = self.field.iter().map(|i| &self.runners[*i]);
        let lone = self.field.len() == 1;
        running.any(|r| r.ended || r.rows.len() >= TRIAL_ROWS)
            || (!lone
                && self.field.iter().all(|i| {
                    let r = &self.runners[*i];
                    r.failed.is_some() || r.works >= self.works_max
                }))
    }

    /// The cached plan has grown bad: let all candidates run from the start.
    fn start_over(&mut self, src: &dyn Source, why: String) {
        src.collection().plan_cache.deactivate(&self.key);
        self.replanned = Some(why);
        for r in &mut self.runners {
            r.root = None;
            r.rows.clear();
            r.works = 0;
            r.ended = false;
            r.failed = None;
        }
        self.field = (0..self.runners.len()).collect();
        self.turn = 0;
        self.works_max = (src.record_count() * 3 / 10).max(limits::PLAN_TRIAL_WORKS_MIN);
    }

    pub(super) fn save(&mut self) {
        self.runners.iter_mut().filter_map(|r| r.root.as_mut()).for_each(|root| root.save());
    }

    /// Names the winner; an error only if every candidate failed.
    pub(super) fn finish(mut self, src: &dyn Source) -> Result<RaceResult> {
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
        let score = winner.score();
        if let Some(e) = winner.failed {
            return Err(e);
        }
        let mut rejected: Vec<Rejected> = self.runners.into_iter().map(Rejected::from).collect();
        rejected.sort_by(|a, b| b.trial.score.total_cmp(&a.trial.score));
        let build = Build { query: &self.query, resources: &self.resources };
        let root = winner.root.unwrap_or_else(|| build.stage(&winner.solution.root));
        let trial = raced.then(|| Trial { stats: root.stats(), score });
        if let Some(trial) = trial.as_ref().filter(|_| !self.query.explained) {
            let info = src.collection();
            let entry = explain::cached(&self.query, &winner.solution, winner.works, trial, &rejected, info);
            info.plan_cache.put(std::mem::take(&mut self.key), entry);
        }
        Ok(RaceResult {
            plan: winner.solution.root,
            root,
            rows: winner.rows,
            done: winner.ended,
            trial,
            rejected,
            replanned: self.replanned,
        })
    }
}

impl From<Runner> for Rejected {
    fn from(r: Runner) -> Rejected {
        let stats = r.root.as_ref().map_or_else(StageStats::default, |root| root.stats());
        Rejected { trial: Trial { stats, score: r.score() }, plan: r.solution.root }
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
