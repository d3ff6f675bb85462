//! From a plan's tree to the stages that run it.

use super::stage::{Resources, Stage};
use super::{combine, distinct, flow, near, scan, shard_filter, sort, text};
use crate::plan::{PlanNode, Query};
use pando_base::patience;

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
            PlanNode::ShardFilter { input, owned, key_fields } => Box::new(
                shard_filter::ShardFilterStage::new(self.stage(input), owned.clone(), key_fields.clone()),
            ),
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
                &self.query.ctx,
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
                Box::new(flow::ReturnKeyStage::new(self.stage(input), fields.clone(), self.query))
            }
            PlanNode::Eof => Box::new(flow::EofStage::default()),
        }
    }
}
