//! What members say of migrations, looked at all the time: who has a tenant, and whether that is so by the donor's decision.

use super::super::Home;
use crate::node::Node;
use pando_base::Uuid;
use pando_tenants::operation::{Access, Phase};
use std::collections::BTreeMap;

/// What was seen of one migration.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Some member of the donor has the decision to commit.
    decided: bool,
    /// Some member knew that a majority has decided so, or otherwise.
    moved: bool,
    stays: bool,
}

#[derive(Default)]
pub(super) struct Decisions(BTreeMap<Uuid, Seen>);

impl Decisions {
    pub(super) fn look(&mut self, nodes: &[Node], problems: &mut Vec<String>) {
        let mut owners = Vec::new();
        for home in Home::BOTH {
            for i in home.machines() {
                let Some(server) = nodes[i].server() else { continue };
                for (operation, access) in server.blockers().map(|b| b.all()).unwrap_or_default() {
                    let seen = self.0.entry(operation.id).or_default();
                    seen.decided |= matches!(operation.phase, Phase::Committed { .. });
                    seen.moved |= access == Some(Access::Moved);
                    seen.stays |= access == Some(Access::Stays);
                    if matches!(access, Some(Access::NoReadsBefore(_))) {
                        owners.push((home, i, operation));
                    }
                }
            }
        }
        for (id, seen) in &self.0 {
            if seen.moved && seen.stays {
                problems.push(format!("migration {id} was decided twice"));
            }
        }
        for (home, i, operation) in owners {
            // Whoever has the decision may have ended since the last look: only where all run nobody has it.
            let all_run = home.other().machines().all(|i| nodes[i].server().is_some());
            if all_run && !self.0[&operation.id].decided {
                problems
                    .push(format!("machine {i} lets everybody at {operation:?}, which nobody has decided"));
            }
        }
        problems.truncate(5);
    }
}
