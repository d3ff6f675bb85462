//! What is broken now, what scenes will do, and when what heals: plain data.

use crate::ProcessId;
use crate::cuts::Cut;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often each kind happened.
pub type Counts = BTreeMap<&'static str, u32>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Heal {
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
pub(crate) struct Sick {
    /// Of which start of the process.
    pub(crate) boots: u32,
    /// When it was seen that a call had failed.
    pub(crate) since: Option<Duration>,
}

/// Of the data path of a follower.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Fetching,
    Applying,
}

impl Stage {
    /// The fail point that holds it still.
    pub(crate) fn held_by(self) -> &'static str {
        match self {
            Stage::Fetching => "stopReplProducer",
            Stage::Applying => "rsSyncApplyStop",
        }
    }
}

/// What a scene does later.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Whoever leads then dies or is cut off.
    LosePrimary,
    /// This member is asked to stand for election.
    Lead(usize),
    TurnVotes,
}

/// What is broken now.
#[derive(Default)]
pub(crate) struct Broken {
    pub(crate) cuts: BTreeMap<u64, Cut>,
    pub(crate) due: Vec<(Duration, Heal)>,
    pub(crate) next_id: u64,
    pub(crate) sick: BTreeMap<usize, Sick>,
    /// What scenes will do.
    pub(crate) acts: Vec<(Duration, Act)>,
    pub(crate) counts: Counts,
}

impl Broken {
    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }
}
