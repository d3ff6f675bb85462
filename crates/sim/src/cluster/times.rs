//! What a router has heard of the cluster's times never goes back while its process lives.

use crate::RouterNode;
use pando_base::Timestamp;
use std::collections::BTreeMap;

/// Cluster time, config time, topology time.
type Times = [Timestamp; 3];

#[derive(Default)]
pub(super) struct Rule {
    /// By router and start of its process.
    seen: BTreeMap<(usize, u32), Times>,
}

impl Rule {
    pub(super) fn look(&mut self, routers: &[RouterNode], problems: &mut Vec<String>) {
        for (i, node) in routers.iter().enumerate() {
            let Some(router) = node.router() else { continue };
            let times = router.times();
            let now = [times.cluster().0, times.config(), times.topology()];
            let before = self.seen.insert((i, node.boots()), now).unwrap_or(now);
            if now.iter().zip(&before).any(|(now, before)| now < before) {
                problems.push(format!("times of router {i} went back from {before:?} to {now:?}"));
            }
        }
    }
}
