//! A pipeline that runs.

use super::held::RanStage;
use super::running::Running;
use super::step::{Input, Step};
use super::upstream::Upstream;
use crate::ctx::QueryCtx;
use crate::reply_depth::check_reply_depth;
use pando_base::Result;
use pando_base::limits::STAGE_ROWS_PER_TURN;

/// A pipeline in the middle of its run. Owned and `Send`; the input is given anew with each pull.
pub struct Runner {
    stages: Vec<Box<dyn Running>>,
    /// Rows that each of them gave.
    returned: Vec<u64>,
    budget: u32,
    /// Its rows may nest deeper than documents in a collection.
    nests: bool,
    ctx: QueryCtx,
}

impl Runner {
    pub(super) fn new(stages: Vec<Box<dyn Running>>, nests: bool, ctx: QueryCtx) -> Runner {
        Runner { returned: vec![0; stages.len()], stages, budget: STAGE_ROWS_PER_TURN, nests, ctx }
    }
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
    /// What was done so far, stage by stage.
    pub fn ran(&self) -> Vec<RanStage> {
        #[allow(clippy::borrowed_box)] // what an iterator over boxes gives
        let of = |(stage, returned): (&Box<dyn Running>, &u64)| RanStage {
            returned: *returned,
            join: stage.join_stats(),
            held: stage.held(),
            facets: stage.facets(),
        };
        self.stages.iter().zip(&self.returned).map(of).collect()
    }
    /// What its stages hold in memory between two batches.
    pub fn held_bytes(&self) -> u64 {
        self.stages.iter().map(|s| s.held_bytes() as u64).sum()
    }
}
