//! A stage that runs, and what it needs from the run it is part of.

use super::bucket_frontier::Frontier;
use super::collections::Collections;
use super::held::{Held, RanStage};
use super::join_stats::JoinStats;
use super::step::Step;
use super::upstream::Upstream;
use crate::ctx::QueryCtx;
use crate::exec::{Each, Fed};
use crate::sort::SpillSpace;
use pando_base::Result;
use std::sync::Arc;

/// A stage in the middle of its run.
pub(crate) trait Running: Send {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step>;
    /// Shows its documents to `each` without making rows of them. `None` when it does not do that.
    fn feed(&mut self, _up: &mut Upstream<'_>, _each: &mut Each<'_>) -> Option<Result<Fed>> {
        None
    }
    /// What it read of another collection.
    fn join_stats(&self) -> Option<JoinStats> {
        None
    }
    fn held_bytes(&self) -> usize {
        0
    }
    /// What it collected, if it is one that collects.
    fn held(&self) -> Option<Held> {
        None
    }
    /// What the pipelines of a `$facet` did.
    fn facets(&self) -> Vec<(u64, Vec<RanStage>)> {
        Vec::new()
    }
    /// Lets go of snapshots of other collections; the next pull may open newer ones.
    fn save(&mut self) {}
}

/// What a pipeline needs to run, beside its documents.
#[derive(Clone, Default)]
pub struct RunEnv {
    /// Where blocking stages may spill; `None` when `allowDiskUse` is false.
    pub spill: Option<Arc<dyn SpillSpace>>,
    /// The other collections; `None` where no stage may read them.
    pub collections: Option<Arc<dyn Collections>>,
}

/// A run whose stages are being started, the first one first.
pub(crate) struct Start<'a> {
    pub(super) env: &'a RunEnv,
    pub(super) ctx: &'a QueryCtx,
    /// How far buckets that come in order have come, for the sort behind them.
    pub(super) frontier: Option<Arc<Frontier>>,
}

impl Start<'_> {
    pub(super) fn spill(&self) -> Option<Arc<dyn SpillSpace>> {
        self.env.spill.clone()
    }
}
