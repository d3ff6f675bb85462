//! What a member remembers of elections for those who ask about them; no decision depends on it.

use crate::candidacy::Reason;
use crate::member::MemberId;
use pando_base::{Millis, OpTime, Term, Timestamp};
use std::collections::BTreeMap;

/// The last election won (`electionCandidateMetrics`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ElectionRecord {
    pub reason: Reason,
    pub term: Term,
    pub time: Timestamp,
    pub date: Millis,
    pub last_committed: OpTime,
    pub last_seen: OpTime,
    pub votes_needed: usize,
    pub prior_primary: MemberId,
    /// Where this node was when it began to fetch what others had beyond it.
    pub catch_up_from: Option<OpTime>,
    pub new_term_start: Option<Millis>,
    pub majority_available: Option<Millis>,
}

/// `electionMetrics`: tried and won, by reason.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ElectionCounts {
    pub called: BTreeMap<Reason, u64>,
    pub successful: BTreeMap<Reason, u64>,
    pub step_downs_higher_term: u64,
    pub catch_ups: u64,
    pub catch_ups_succeeded: u64,
    pub catch_ups_timed_out: u64,
    pub catch_ups_skipped: u64,
    pub catch_ups_already_caught_up: u64,
    pub catch_ups_failed: u64,
    /// Ours: suspicions, and those that a quick probe refuted.
    pub suspicions: u64,
    pub suspicions_refuted: u64,
}

/// The last real vote asked of this node (`electionParticipantMetrics`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VoteRecord {
    pub granted: bool,
    pub term: Term,
    pub date: Millis,
    pub candidate: MemberId,
    pub reason: String,
    pub last_applied: OpTime,
    pub newest_in_set: OpTime,
    /// When the winner wrote the first entry of the term, and when this node applied it.
    pub new_term: Option<(Millis, Millis)>,
}
