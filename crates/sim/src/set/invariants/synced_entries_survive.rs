//! What a member called durable is there after any crash (INV-14, INV-24).

use super::{Invariant, Problems};
use crate::set::committed::Entry;
use crate::set::look::{Look, Loss};
use pando_base::Timestamp;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rule {
    /// Synced up to here, at the look before.
    synced: BTreeMap<usize, Timestamp>,
}

impl Invariant for Rule {
    fn look(&mut self, look: &Look<'_>, problems: &mut Problems) {
        for (who, why, lost) in look.gone {
            let synced = self.synced.get(who).copied().unwrap_or_default();
            // A rollback takes out what is synced, too, but nothing that is committed.
            let must_stay = |e: &&Entry| match why {
                Loss::Crash => e.at.ts <= synced,
                Loss::CrashInRollback => e.at.ts <= synced && look.committed.holds(e),
                Loss::Rollback | Loss::Unexplained => false,
            };
            if let Some(e) = lost.iter().find(must_stay) {
                problems.push(format!("member {who} lost {} by a crash; it was synced up to {synced}", e.at));
            }
        }
        for (who, now, _) in look.running() {
            self.synced.insert(who, now.synced);
        }
    }
    fn forget(&mut self, who: usize) {
        self.synced.remove(&who);
    }
}
