//! How a primary stands in its office: what it does before it writes, and how it leaves.

use crate::event::Token;
use crate::message::StepDownRequest;
use pando_base::{Millis, OpTime};

/// R-STEP-2. A follower is `NotLeader`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaderMode {
    NotLeader,
    /// Elected; catching up or draining.
    LeaderElect,
    WritablePrimary,
    /// A conditional step-down is being tried: no writes, may fail.
    AttemptingStepDown,
    /// Cannot be stopped any more.
    SteppingDown,
}

/// From winning an election to accepting writes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum CatchUp {
    /// Fetching; the target is known once everyone who is up has answered.
    Running { target: Option<OpTime>, since: Millis },
    /// The buffer is being applied.
    Draining,
    /// The first entry of the term is being written.
    Writing,
}

/// A step-down on its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct StepDownAttempt {
    /// `None` = unconditional.
    pub(crate) command: Option<StepDownCommand>,
    /// The lock asked for and not yet granted.
    pub(crate) lock: Option<u64>,
}

/// `replSetStepDown` as it was given.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct StepDownCommand {
    pub(crate) token: Token,
    pub(crate) request: StepDownRequest,
    pub(crate) wait_until: Millis,
    pub(crate) until: Millis,
    /// Restored on failure.
    pub(crate) mode_before: LeaderMode,
}
