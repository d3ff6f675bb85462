//! What becomes of tables that members have taken in, as far as it can be seen: who lacks them, and whose publication was undone.

use super::super::database;
use super::TENANTS;
use crate::node::Node;
use crate::set::lines;
use crate::world::Line;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Members that copied their set's data for want of what the set had taken in.
    pub(super) lacking: usize,
    /// Rollbacks by which collections of tenants that had just come went again.
    pub(super) undone: usize,
}

#[derive(Default)]
pub(super) struct Seen {
    pub(super) counts: Counts,
    /// Of each machine: which start of it, and how many tenants it had.
    had: BTreeMap<usize, (u32, usize)>,
}

impl Seen {
    pub(super) fn look(&mut self, nodes: &[Node], told: &[Line]) {
        let lacks = |l: &&Line| matches!(l.id, lines::LACKS | lines::LACKS_AT_START);
        self.counts.lacking += told.iter().filter(lacks).count();
        for (i, node) in nodes.iter().enumerate() {
            let Some(server) = node.server() else { continue };
            let there = server.databases();
            let now = (0..TENANTS).filter(|t| there.contains(&database(*t))).count();
            let rolled_back = told.iter().any(|l| l.id == lines::ROLLED_BACK && l.machine == node.machine());
            let before = self.had.insert(i, (node.boots(), now));
            // One tenant alone may have come by a copy of its documents.
            let went = before.is_some_and(|(boots, had)| boots == node.boots() && had > now + 1);
            self.counts.undone += usize::from(rolled_back && went);
        }
    }
}
