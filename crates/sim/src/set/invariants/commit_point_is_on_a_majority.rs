//! What is committed lies on the disks of a majority (INV-9): of those that run, as they are; of those that are away,
//! as they turn out to be when they come back.

use super::{Invariant, Problems};
use crate::set::look::Look;
use pando_base::OpTime;
use std::collections::BTreeSet;

#[derive(Default)]
pub(super) struct Rule {
    /// Not proved yet: somebody was away.
    open: Vec<Claim>,
}

struct Claim {
    point: OpTime,
    holders: BTreeSet<usize>,
    without: BTreeSet<usize>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        if let Some(e) = look.newly_committed.last() {
            let (holders, without) = Default::default();
            self.open.push(Claim { point: e.at, holders, without });
        }
        let majority = look.members.len() / 2 + 1;
        self.open.retain_mut(|claim| {
            for (who, _, _) in look.running() {
                let log = &look.logs[who];
                if claim.holders.contains(&who) || claim.without.contains(&who) || log.entries.is_empty() {
                    continue;
                }
                let holds = log.holds(claim.point) && log.synced >= claim.point.ts;
                if holds { &mut claim.holders } else { &mut claim.without }.insert(who);
            }
            let refuted = look.members.len() - claim.without.len() < majority;
            if refuted {
                problems.push(format!(
                    "{} is called committed, but members {:?} do not hold it on disk",
                    claim.point, claim.without
                ));
            }
            claim.holders.len() < majority && !refuted
        });
    }
    fn forget(&mut self, who: usize) {
        // Whether it held them is lost with its disk, unless it was seen.
        self.open.retain(|claim| claim.holders.contains(&who) || claim.without.contains(&who));
    }
}
