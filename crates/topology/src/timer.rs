//! Everything that happens later, as data: a due time per timer, so that state can be copied, hashed and compared.

use crate::core::Core;
use crate::member::MemberId;
use pando_base::Millis;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// No primary was seen for an election timeout.
    Election,
    PriorityTakeover,
    CatchUpTakeover,
    /// Confirmed loss of the primary: this node's turn to stand.
    FastElection,
    /// The whole set is there and has no primary: this node's turn to stand.
    WholeStart,
    /// Votes that have not come will not come.
    Votes,
    /// Next heartbeat to a member.
    Heartbeat(MemberId),
    /// The answer to the last one is overdue.
    HeartbeatOverdue(MemberId),
    /// Members not heard from are counted out.
    Liveness,
    CatchUp,
    /// Whoever has not answered a new primary by now is not waited for.
    CatchUpAnswers,
    /// A conditional step-down has waited long enough.
    StepDown,
    /// This node may be elected again.
    StepDownPeriod,
    /// Positions go to the sync source although nothing moved.
    KeepAlive,
    /// A reconfiguration's quorum check has waited long enough.
    Quorum,
}

impl Core {
    pub(crate) fn set_timer(&mut self, timer: Timer, at: Millis) {
        self.timers.insert(timer, at);
    }
    pub(crate) fn cancel_timer(&mut self, timer: Timer) {
        self.timers.remove(&timer);
    }
    pub fn timer(&self, timer: Timer) -> Option<Millis> {
        self.timers.get(&timer).copied()
    }
    /// When to come back with [`crate::Event::Tick`]; changes with every step.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.timers.values().min().copied()
    }
    /// The earliest due timer.
    pub(crate) fn next_due(&self, now: Millis) -> Option<Timer> {
        self.timers.iter().filter(|(_, at)| **at <= now).min_by_key(|(t, at)| (**at, **t)).map(|(t, _)| *t)
    }
    pub fn timers(&self) -> impl Iterator<Item = (Timer, Millis)> + '_ {
        self.timers.iter().map(|(t, at)| (*t, *at))
    }
}
