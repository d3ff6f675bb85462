//! A set whose members all start together need not wait for an election timeout (ours; parameter
//! `fastFailureDetection`).
//!
//! The timeout gives a primary that is merely silent time to be heard of. When every voter has answered since this
//! process began, all of them follow, and none knows of a primary, there is nobody to wait for:
//!
//! ```text
//!   started, no primary seen yet
//!     └► all other voters are up, SECONDARY or ARBITER, and say that they know no primary
//!          └► stand, best placed first, dry run first; once in the life of a process
//! ```
//! One voter that is down or in another state leaves everything to the timeout, and so does a lost election.

use crate::action::Actions;
use crate::candidacy::Reason;
use crate::core::Core;
use crate::early_signs::Gathering;
use crate::member::MemberState;
use crate::mutants::{Mutant, broken};
use crate::timer::Timer;
use pando_base::{Millis, limits};

impl Core {
    /// Something was heard of a member, or this node's own state changed.
    pub(crate) fn look_at_whole_start(&mut self) {
        let due = match self.gathering {
            Gathering::Over => return,
            Gathering::Waiting => None,
            Gathering::Due { rank } => Some(rank),
        };
        if !self.params.prompt_start || self.primary.is_some() || self.is_leader() {
            return self.end_gathering();
        }
        if !self.is_everybody_without_primary() {
            self.gathering = Gathering::Waiting;
            return self.timers.cancel(Timer::WholeStart);
        }
        let rank = self.fast_rank();
        if due != Some(rank) {
            self.gathering = Gathering::Due { rank };
            let spread = limits::FAILOVER_SPREAD_MS * self.draw as Millis / 1000;
            self.timers.set(Timer::WholeStart, self.now + rank * limits::FAILOVER_STAGGER_MS + spread);
        }
    }

    fn is_everybody_without_primary(&self) -> bool {
        let Some(config) = &self.config else { return false };
        self.state() == MemberState::Secondary
            && config.voters() > 1
            && config.members.iter().filter(|m| m.is_voter() && m.id != self.self_id()).all(|m| {
                self.members.get(&m.id).is_some_and(|d| {
                    d.is_up()
                        && matches!(d.state, MemberState::Secondary | MemberState::Arbiter)
                        && (d.primary_id < 0 || broken(Mutant::StartDespitePrimary))
                })
            })
    }

    pub(crate) fn on_whole_start_due(&mut self, out: &mut Actions) {
        self.end_gathering();
        if self.primary.is_none() {
            let _ = self.stand(Reason::WholeSetStarted, None, out);
        }
    }

    /// Whatever comes now is the ordinary life of a set.
    pub(crate) fn end_gathering(&mut self) {
        self.gathering = Gathering::Over;
        self.timers.cancel(Timer::WholeStart);
    }
}
