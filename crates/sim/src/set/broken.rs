//! What is broken now, what scenes will do, and when what heals: plain data.

use crate::ProcessId;
use crate::links::Refusal;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often each kind happened.
pub type Counts = BTreeMap<&'static str, u32>;

/// Between members; clients go on unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// A member from all others.
    Member(usize),
    /// A member from all others and from the clients.
    Machine(usize),
    /// A member hears the others; they do not hear it.
    Mute(usize),
    /// The others hear a member; it does not hear them.
    Deaf(usize),
    /// Each member reaches only its neighbours in a ring; with three, one pair is apart.
    Ring(usize),
    Pair(usize, usize),
    Slow(usize, u64),
    Loss(u64),
    /// New connections to a member are turned away while it goes on with those that it has.
    Refusing(usize, Refusal),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Heal {
    Boot(usize),
    Cut(u64),
    /// A paused process, unless it was killed meanwhile.
    GoOn(ProcessId),
    Pace(usize),
    Disk(usize),
    /// A stage of a follower's data path.
    Stall(usize, ProcessId, Stage),
}

/// A disk that fails, or will.
pub(super) struct Sick {
    /// Of which start of the process.
    pub(super) boots: u32,
    /// When it was seen that a call had failed.
    pub(super) since: Option<Duration>,
}

/// Of the data path of a follower.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Fetching,
    Applying,
}

impl Stage {
    /// The fail point that holds it still.
    pub(super) fn held_by(self) -> &'static str {
        match self {
            Stage::Fetching => "stopReplProducer",
            Stage::Applying => "rsSyncApplyStop",
        }
    }
}

/// What a scene does later.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Whoever leads then dies or is cut off.
    LosePrimary,
    /// This member is asked to stand for election.
    Lead(usize),
    TurnVotes,
}

/// What is broken now.
#[derive(Default)]
pub(super) struct Broken {
    pub(super) cuts: BTreeMap<u64, Cut>,
    pub(super) due: Vec<(Duration, Heal)>,
    pub(super) next_id: u64,
    pub(super) sick: BTreeMap<usize, Sick>,
    /// What scenes will do.
    pub(super) acts: Vec<(Duration, Act)>,
    pub(super) counts: Counts,
}

impl Broken {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }
}
