//! Whether a member, behind a start of its process or a rollback, has what its set had (ours; only in a set of many tenants).
//!
//! A set of many tenants gives some of them away while its members come and go. Whoever was away over the decision has not heard of it:
//! for as long as it takes to find a sync source it would show, to reads with the weakest concern, tenants that are elsewhere and have gone
//! on there. Whoever has rolled back is as far behind as it was when its branch began. So they let them wait:
//!
//! ```text
//!   started, or rolled back
//!          ──► a primary answers a heartbeat: this member owes what that one has applied
//!                 └► applied as much ─────────────────────────┐
//!          ──► this member is the primary ────────────────────┼──► up to date, until the next rollback
//!          ──► no primary for an election timeout ────────────┘
//! ```
//! A member that nobody tells anything reads what it has, as everywhere: who has lost the other members gets at the data. So does one
//! that is to lag behind (`secondaryDelaySecs`): whoever reads there wants what was.

use crate::action::{Action, Actions};
use crate::core::Core;
use crate::member::Positions;
use crate::mutants::{Mutant, broken};
use crate::timer::Timer;
use pando_base::OpTime;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum UpToDate {
    /// No primary was heard of since.
    Unheard,
    /// What the first primary that was heard of had.
    Owes(OpTime),
    Yes,
}

impl UpToDate {
    pub(crate) fn at_start(name_is_given: bool) -> UpToDate {
        if name_is_given { UpToDate::Yes } else { UpToDate::Unheard }
    }
}

impl Core {
    /// Whether reads of tenants may look at what this node has applied.
    pub fn is_up_to_date(&self) -> bool {
        self.up_to_date == UpToDate::Yes
    }

    /// What was undone may have been the newest that this member had of its set: the primary tells, and is asked at once.
    pub(crate) fn on_rewound(&mut self, out: &mut Actions) {
        if self.name_is_given || broken(Mutant::TenantsShownRolledBack) {
            return;
        }
        self.up_to_date = UpToDate::Unheard;
        self.await_a_primary();
        if let Some(id) =
            self.primary.filter(|id| self.members.get(id).is_some_and(|m| m.in_flight.is_none()))
        {
            self.timers.set(Timer::Heartbeat(id), self.now);
        }
        out.push(Action::UpToDate(false));
    }
    /// From now on a primary has an election timeout to be heard of.
    pub(crate) fn await_a_primary(&mut self) {
        if !self.is_up_to_date() {
            self.timers.set(Timer::UpToDate, self.now + self.election_timeout_ms());
        }
    }
    pub(crate) fn hear_of_primary(&mut self, theirs: &Positions) {
        if self.up_to_date == UpToDate::Unheard {
            self.up_to_date = UpToDate::Owes(theirs.applied.op);
        }
        self.await_a_primary();
    }
    /// Something was heard, applied, or this node's office is another one.
    pub(crate) fn look_at_debt(&mut self, out: &mut Actions) {
        let paid = match self.up_to_date {
            UpToDate::Yes => return,
            UpToDate::Unheard => broken(Mutant::TenantsShownUnheard),
            UpToDate::Owes(at) => self.me.applied.op >= at || broken(Mutant::TenantsShownBehind),
        };
        let delayed = self.self_member().is_some_and(|m| m.secondary_delay_secs > 0);
        if paid || self.is_writable() || delayed {
            self.end_debt(out);
        }
    }
    pub(crate) fn on_no_primary_in_time(&mut self, out: &mut Actions) {
        if !self.is_up_to_date() && !broken(Mutant::TenantsHiddenForEver) {
            self.end_debt(out);
        }
    }
    fn end_debt(&mut self, out: &mut Actions) {
        self.timers.cancel(Timer::UpToDate);
        self.up_to_date = UpToDate::Yes;
        out.push(Action::UpToDate(true));
    }
}
