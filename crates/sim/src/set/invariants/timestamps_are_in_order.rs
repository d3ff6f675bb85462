//! oldest ≤ stable ≤ what is committed and what has no holes; applied and durable ≤ written (INV-15).
//!
//! A member's history begins where its copy of the set ended: there it is stable, whatever is committed.

use super::{Invariant, Problems};
use crate::set::look::Look;
use pando_base::Timestamp;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    /// Where a member stood when it was first seen with data.
    began: BTreeMap<usize, Timestamp>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, now, _) in look.running() {
            let mut wrong = |what: &str| problems.push(format!("member {who}: {what}: {now:?}"));
            if now.oldest > now.stable {
                wrong("oldest beyond stable");
            }
            if now.stable > now.all_durable {
                wrong("stable beyond the first hole");
            }
            if now.applied > now.written || now.durable > now.written {
                wrong("applied or durable beyond written");
            }
            if now.copying {
                self.began.remove(&who);
            }
            if look.logs[who].entries.is_empty() {
                continue;
            }
            let began = *self.began.entry(who).or_insert(now.applied.ts);
            let newest = look.committed.newest();
            // What the only voter has on its disk is committed, also where it ended before anybody was told so.
            let alone = if now.voters == 1 { now.durable.ts.max(now.synced) } else { began };
            if !newest.is_null() && now.stable > newest.ts.max(began).max(alone) {
                wrong("stable beyond everything committed");
            }
        }
    }
    fn forget(&mut self, who: usize) {
        self.began.remove(&who);
    }
}
