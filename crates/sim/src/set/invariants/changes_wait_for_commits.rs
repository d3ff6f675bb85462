//! A primary replaces its configuration only when everything that was committed lies on the disks of a majority of that
//! configuration's voters (R-CONF-6): otherwise the next one but one could have a majority that never had it.

use super::{Invariant, Problems};
use crate::set::look::Look;
use pando_base::OpTime;
use std::collections::BTreeMap;

/// The configuration of a primary, as it was seen.
struct Present {
    term: i64,
    version: i64,
    /// Committed when it was first seen.
    owed: OpTime,
}

#[derive(Default)]
pub(super) struct Rule {
    present: BTreeMap<usize, Present>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, now, before) in look.running() {
            let Some(before) = before.filter(|b| b.boots == now.boots && b.writable && now.writable) else {
                self.present.remove(&who);
                continue;
            };
            let (term, version) = (now.config.term, now.config.version);
            let present = self.present.get(&who).filter(|p| p.term == term && p.version != version);
            // What is forced has no term, and two changes between two looks tell nothing of the first.
            if let Some(p) = present.filter(|p| p.term == now.term && p.version + 1 == version) {
                let voters = (0..look.logs.len()).filter(|i| before.voters & 1 << i != 0);
                let holders = voters.filter(|i| holds(look, *i, p.owed)).count();
                if holders < before.write_majority as usize {
                    problems.push(format!(
                        "member {who} replaced configuration {} of term {term}: {} is committed, and {holders} of its voters hold it, not {}",
                        p.version, p.owed, before.write_majority
                    ));
                }
            }
            if self.present.get(&who).is_none_or(|p| (p.term, p.version) != (term, version)) {
                self.present.insert(who, Present { term, version, owed: look.committed.newest() });
            }
        }
    }
    fn forget(&mut self, who: usize) {
        self.present.remove(&who);
    }
}

/// As last seen; a log that begins later came with a copy of what was before.
fn holds(look: &Look<'_>, who: usize, owed: OpTime) -> bool {
    let log = &look.logs[who];
    let begins_later = log.entries.first().is_some_and(|e| e.at.ts > owed.ts);
    begins_later || (log.holds(owed) && log.synced >= owed.ts)
}
