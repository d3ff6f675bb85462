//! Who is heard of, directly or through others (R-UPOS-4): a primary that a majority cannot be heard of steps down.

use crate::action::Actions;
use crate::core::Core;
use crate::member::MemberId;
use crate::mutants::{Mutant, broken};
use crate::timer::Timer;

impl Core {
    /// On a primary: count out who was silent for an election timeout, and look again when the next one would be.
    pub(crate) fn on_liveness_due(&mut self, out: &mut Actions) {
        if !self.is_leader() {
            return;
        }
        let (now, limit) = (self.now, self.election_timeout_ms());
        let mut next = now + limit;
        let mut silent = Vec::new();
        for (id, data) in &mut self.members {
            if data.last_update + limit <= now {
                if !data.stale {
                    data.stale = true;
                    silent.push(*id);
                }
            } else {
                next = next.min(data.last_update + limit);
            }
        }
        for id in silent {
            self.mark_down(id, "no update within the election timeout".to_owned(), out);
        }
        self.timers.set(Timer::Liveness, next.max(now + 1));
        self.step_down_without_majority(out);
    }

    /// Heartbeats that fail say the same as silence, unless others hear of the member.
    pub(crate) fn on_member_down(&mut self, _id: MemberId, out: &mut Actions) {
        self.check_catch_up(out);
    }

    fn step_down_without_majority(&mut self, out: &mut Actions) {
        let (Some(config), true) = (&self.config, self.is_leader()) else { return };
        let live = config
            .members
            .iter()
            .filter(|m| m.is_voter())
            .filter(|m| m.id == self.self_id() || self.members.get(&m.id).is_some_and(|d| !d.stale))
            .count();
        if live * 2 <= config.voters() && !broken(Mutant::LonelyPrimaryStays) {
            self.step_down_unconditionally("it cannot see a majority of the set", out);
        }
    }
}
