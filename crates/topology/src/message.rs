//! What members say to each other. [`crate::wire_form`] turns these into documents and back.

use crate::config::ReplSetConfig;
use crate::config_order::ConfigId;
use crate::member::{Host, MemberId, MemberState, Positions};
use crate::mutants::{Mutant, broken};
use pando_base::{ErrorCode, Millis, OpTime, Term, Timestamp};
use pando_bson::ObjectId;
use std::sync::Arc;

/// `replSetHeartbeat` (R-HB-2).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HeartbeatRequest {
    pub set_name: String,
    /// Version [`ConfigId::UNINITIALIZED`] from a node without a configuration.
    pub config: ConfigId,
    pub from_host: String,
    /// -1 from a node without a configuration.
    pub from_id: MemberId,
    pub term: Term,
    /// The primary the sender sees, or -1.
    pub primary_id: MemberId,
    /// Ours (`lostPrimary`, `lostPrimaryTerm`). The receiver looks for itself.
    pub lost_primary: Option<LostPrimary>,
}

/// A member's connections to the primary of this term are refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LostPrimary {
    pub id: MemberId,
    pub term: Term,
}

/// The answer to it (R-HB-3).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HeartbeatReply {
    pub set_name: String,
    pub state: MemberState,
    pub config_id: ConfigId,
    /// Attached when the sender's is older; or what the receiver finds wrong with it.
    pub config: Option<Result<Arc<ReplSetConfig>, String>>,
    /// All null from a member in STARTUP2.
    pub positions: Positions,
    pub term: Term,
    pub primary_id: MemberId,
    pub sync_source: String,
    /// Of a primary.
    pub election_time: Timestamp,
    pub electable: bool,
    /// Ours: see [`HeartbeatRequest::lost_primary`].
    pub lost_primary: Option<LostPrimary>,
    /// For arbiters and members that fetch nothing (R-CP-3, R-CP-5).
    pub committed: crate::member::Position,
}

/// `replSetRequestVotes` (R-ELEC-6).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VoteRequest {
    pub set_name: String,
    pub dry_run: bool,
    pub term: Term,
    pub candidate_index: usize,
    pub config: ConfigId,
    pub last_applied: OpTime,
    /// Ours (`lostPrimary`, `lostPrimaryTerm`): asked before the election timeout, because this primary refuses connections.
    pub lost_primary: Option<LostPrimary>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VoteReply {
    pub term: Term,
    pub granted: bool,
    pub reason: String,
}

/// One member's entry of `replSetUpdatePosition`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MemberPosition {
    pub member_id: MemberId,
    pub config_version: i64,
    pub positions: Positions,
}

/// `replSetUpdatePosition` (R-UPOS-1), sent to the sync source.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UpdatePosition {
    pub optimes: Vec<MemberPosition>,
    pub metadata: ReplSetMetadata,
}

/// `$replData`: on every replication command and its answer (R-META-1).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReplSetMetadata {
    pub term: Term,
    pub committed: crate::member::Position,
    pub last_visible: OpTime,
    pub config: ConfigId,
    pub replica_set_id: Option<ObjectId>,
    /// Place in the configuration of the sender's sync source; -1 without one.
    pub sync_source_index: i64,
    pub is_primary: bool,
}

/// `$oplogQueryData`: on the answers a fetcher gets (R-META-2).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OplogQueryMetadata {
    pub committed: crate::member::Position,
    pub applied: OpTime,
    pub written: OpTime,
    pub rbid: i64,
    /// Place in the configuration of the primary the sender sees; -1 without one.
    pub primary_index: i64,
    pub sync_source_index: i64,
    pub sync_source_host: String,
}

/// The vote this node gave last, as `local.replset.election` keeps it (R-ELEC-8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LastVote {
    pub term: Term,
    /// Place of the candidate in the configuration; -1 = nobody.
    pub candidate_index: i64,
}

impl LastVote {
    pub const NONE: LastVote = LastVote { term: 0, candidate_index: -1 };
}

/// Why a question to another member got no proper answer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Failure {
    /// Nobody listens at the address.
    Refused,
    /// The connection broke.
    Reset,
    Timeout,
    /// It answered, but does not know us.
    Auth,
    /// It answered with an error.
    Answer(ErrorCode, String),
    /// Anything else (a name that does not resolve, garbage).
    Other(String),
}

impl Failure {
    /// The process at the other end is certainly not serving.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Failure::Refused) || (broken(Mutant::FastOnClosed) && matches!(self, Failure::Reset))
    }
    /// It may have ended: worth a probe. A server with too many connections closes them too.
    pub fn hints_at_end(&self) -> bool {
        matches!(self, Failure::Refused | Failure::Reset)
    }
    pub fn text(&self) -> String {
        match self {
            Failure::Refused => "Connection refused".to_owned(),
            Failure::Reset => "Connection closed by peer".to_owned(),
            Failure::Timeout => "Couldn't get a connection within the time limit".to_owned(),
            Failure::Auth => "Authentication failed".to_owned(),
            Failure::Answer(_, text) | Failure::Other(text) => text.clone(),
        }
    }
}

/// A member as the shell addresses it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Peer {
    pub id: MemberId,
    pub host: Host,
}

/// Durations and counts of one step-down (serverStatus, log lines).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StepDownRequest {
    pub force: bool,
    /// `secondaryCatchUpPeriodSecs`.
    pub catch_up_ms: Millis,
    /// How long this node refuses to be elected afterwards.
    pub period_ms: Millis,
}
