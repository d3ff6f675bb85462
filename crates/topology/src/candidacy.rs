//! An election that this node runs: why, how far it is, who has answered.

use crate::event::Token;
use crate::member::MemberId;
use pando_base::{Millis, Term};
use std::collections::BTreeMap;

/// R-ELEC-1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    ElectionTimeout,
    PriorityTakeover,
    CatchUpTakeover,
    StepUpRequest,
    StepUpRequestSkipDryRun,
    SingleNodePromptElection,
    /// Ours: the primary refuses connections and a majority agrees.
    PrimaryLost,
    /// Ours: everybody has just started and nobody knows a primary.
    WholeSetStarted,
}

impl Reason {
    /// As `electionCandidateMetrics.lastElectionReason` shows it.
    pub fn text(self) -> &'static str {
        match self {
            Reason::ElectionTimeout => "electionTimeout",
            Reason::PriorityTakeover => "priorityTakeover",
            Reason::CatchUpTakeover => "catchupTakeover",
            Reason::StepUpRequest => "stepUpRequest",
            Reason::StepUpRequestSkipDryRun => "stepUpRequestSkipDryRun",
            Reason::SingleNodePromptElection => "singleNodePromptElection",
            Reason::PrimaryLost => "primaryLost",
            Reason::WholeSetStarted => "wholeSetStarted",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Phase {
    DryRun,
    /// The vote for itself is being written.
    Voting,
    Real,
}

/// An election this node runs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Candidacy {
    pub(crate) id: u64,
    pub(crate) reason: Reason,
    pub(crate) phase: Phase,
    /// Of the requests: the present one in a dry run, the next one in a real run.
    pub(crate) term: Term,
    /// Who answered, and how.
    pub(crate) answers: BTreeMap<MemberId, bool>,
    pub(crate) asked: usize,
    pub(crate) started: Millis,
    /// The command that asked for it.
    pub(crate) token: Option<Token>,
}
