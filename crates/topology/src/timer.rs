//! Everything that happens later, as data: a due time per timer, so that state can be copied, hashed and compared.

use crate::member::MemberId;
use pando_base::Millis;
use std::collections::BTreeMap;

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
    /// No primary has told a member of many tenants what it owes.
    UpToDate,
}

/// When each timer that runs is due.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Timers {
    due: BTreeMap<Timer, Millis>,
}

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Millis) {
        self.due.insert(timer, at);
    }
    pub(crate) fn cancel(&mut self, timer: Timer) {
        self.due.remove(&timer);
    }
    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.due.contains_key(&timer)
    }
    pub(crate) fn get(&self, timer: Timer) -> Option<Millis> {
        self.due.get(&timer).copied()
    }
    /// The earliest due timer.
    pub(crate) fn next_due(&self, now: Millis) -> Option<Timer> {
        self.due.iter().filter(|(_, at)| **at <= now).min_by_key(|(t, at)| (**at, **t)).map(|(t, _)| *t)
    }
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        self.due.values().min().copied()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Timer, Millis)> + '_ {
        self.due.iter().map(|(t, at)| (*t, *at))
    }
    /// Those about members that are none any more.
    pub(crate) fn forget_members(&mut self, is_member: impl Fn(MemberId) -> bool) {
        self.due.retain(|t, _| match t {
            Timer::Heartbeat(id) | Timer::HeartbeatOverdue(id) => is_member(*id),
            _ => true,
        });
    }
}
