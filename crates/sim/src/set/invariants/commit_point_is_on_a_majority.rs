//! What is committed lies on the disks of a majority of the voters (INV-9): of those that run, as they are; of those that are
//! away, as they turn out to be when they come back. While the configuration changes, one that somebody had is enough.

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
    /// Voters with data and how many are needed, by each configuration of that time.
    quorums: BTreeSet<(u64, u32)>,
    holders: BTreeSet<usize>,
    without: BTreeSet<usize>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        // One that came and went between two looks may have been the one that counted.
        let unseen = look.running().any(|(_, now, before)| {
            before.is_some_and(|b| now.config.version > b.config.version + 1 && b.boots == now.boots)
        });
        if let Some(e) = look.newly_committed.last().filter(|_| !unseen) {
            let (holders, without) = Default::default();
            let seen = look.members.iter().chain(look.before).flatten();
            let quorums = seen.map(|m| (m.voters, m.write_majority)).filter(|(_, n)| *n > 0).collect();
            self.open.push(Claim { point: e.at, quorums, holders, without });
        }
        self.open.retain_mut(|claim| {
            for (who, _, _) in look.running() {
                let log = &look.logs[who];
                if claim.holders.contains(&who) || claim.without.contains(&who) || log.entries.is_empty() {
                    continue;
                }
                let holds = log.holds(claim.point) && log.synced >= claim.point.ts;
                if holds { &mut claim.holders } else { &mut claim.without }.insert(who);
            }
            let count = |voters: u64, of: &BTreeSet<usize>| {
                of.iter().filter(|who| voters & 1 << **who != 0).count() as u32
            };
            let proved = claim.quorums.iter().any(|(v, n)| count(*v, &claim.holders) >= *n);
            let refuted = claim.quorums.iter().all(|(v, n)| v.count_ones() - count(*v, &claim.without) < *n);
            if refuted {
                problems.push(format!(
                    "{} is called committed, but members {:?} do not hold it on disk (voters and majorities: {:?})",
                    claim.point, claim.without, claim.quorums
                ));
            }
            !proved && !refuted
        });
    }
    fn forget(&mut self, who: usize) {
        // Whether it held them is lost with its disk, unless it was seen.
        self.open.retain(|claim| claim.holders.contains(&who) || claim.without.contains(&who));
    }
}
