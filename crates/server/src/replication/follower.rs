//! The state of a member that follows, and what its coordinator is told of it.

use super::Replication;
use pando_base::Result;
use pando_repl::topology::{Event, MemberState};

impl Replication {
    pub(crate) fn tell(&self, event: Event) {
        if let Some(c) = self.coordinator.get() {
            c.tell(event);
        }
    }
    /// From now on this member cannot be elected; false where it was before.
    pub(crate) fn leave_service(&self) -> Result<bool> {
        let coordinator = self.coordinator()?;
        coordinator.tell(Event::FollowerState(MemberState::Rollback));
        let leads = coordinator.read(|core| core.is_leader());
        if leads {
            coordinator.tell(Event::FollowerState(self.follower_state()));
        }
        Ok(!leads)
    }
    /// Of a member that follows: nobody reads data that is not of one time.
    pub(crate) fn follower_state(&self) -> MemberState {
        if self.maintenance.is_before_min_valid() { MemberState::Recovering } else { MemberState::Secondary }
    }
}
