//! What a join read of the other collection, as explain tells it.

use super::collections::Examined;
use crate::exec::Executor;
use crate::plan::PlanNode;
use crate::source::CollectionInfo;
use std::collections::BTreeSet;

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
    pub(super) fn add(&mut self, exec: &Executor, info: &CollectionInfo) {
        let stats = exec.stats();
        self.docs += stats.total_docs_examined();
        self.keys += stats.total_keys_examined();
        if let Some(plan) = exec.plan() {
            self.add_scans(plan, info);
        }
    }
    pub(super) fn examined(&self) -> Examined {
        Examined { docs: self.docs, keys: self.keys, collection_scans: self.collection_scans }
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
            other => other.index(),
        };
        if let Some(i) = index.and_then(|i| info.indexes.get(i)) {
            self.indexes.insert(i.name.clone());
        }
        plan.inputs().iter().for_each(|n| self.add_scans(n, info));
    }
}
