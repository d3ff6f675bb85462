//! A member whose log ends before the others' begin: it leaves service, and in the end copies the set's data again
//! (R-SYNC-9, R-SYNC-11; the copying by itself is ours, `resyncWhenTooStale`).
//!
//! ```text
//!   no source is left, one begins too late ─────────► RECOVERING
//!     every other member with data begins too late ─► copy again
//!     everybody ahead of this member does, others are down or behind ─ after a while ─► copy again
//!   a source with what comes next ──────────────────► SECONDARY
//! ```

use crate::action::Actions;
use crate::core::Core;
use crate::member::Host;
use crate::mutants::{Mutant, broken};
use pando_base::OpTime;

impl Core {
    /// No sign of a parting; but where there was one, this source cannot tell where, either.
    pub(crate) fn on_begins_too_late(&mut self, host: &Host, oldest: OpTime) {
        self.aside.add_too_late(host, self.now);
        if self.aside.parted().is_some() {
            self.on_no_common_point(host, oldest);
        }
    }

    pub(crate) fn on_too_stale(&mut self, stale: bool, out: &mut Actions) {
        if !stale {
            self.aside.forget_too_late();
        }
        if self.too_stale != stale {
            self.too_stale = stale;
            self.schedule_election();
            self.stand_if_alone(out);
        }
    }

    pub fn is_too_stale(&self) -> bool {
        self.too_stale
    }

    /// Nobody has what comes next, and nobody will.
    pub(crate) fn too_stale_for_everybody(&self, last_fetched: OpTime) -> bool {
        let allowed = self.params.resync_when_too_stale || broken(Mutant::CopyAgainUnallowed);
        let Some(since) = self.aside.too_late_since().filter(|_| self.too_stale && allowed) else {
            return false;
        };
        self.asked_in_vain(|host| self.aside.begins_too_late(host), since, last_fetched)
    }
}
