//! What the core asks of the world, in order.

use crate::candidacy::Reason;
use crate::config::ReplSetConfig;
use crate::config_order::ConfigId;
use crate::event::{PersistId, Token};
use crate::member::{Host, MemberState, Position};
use crate::message::{
    HeartbeatReply, HeartbeatRequest, LastVote, Peer, UpdatePosition, VoteReply, VoteRequest,
};
use pando_base::{Error, Millis, OpTime, Term};
use std::sync::Arc;

pub type Actions = Vec<Action>;

#[derive(Clone, Debug)]
pub enum Action {
    /// Give back [`crate::Event::Random`].
    Draw,

    // --- barriers: whatever depends on them is said only after [`crate::Event::Persisted`]
    PersistVote {
        id: PersistId,
        vote: LastVote,
    },
    PersistConfig {
        id: PersistId,
        config: Arc<ReplSetConfig>,
        note: ConfigNote,
    },

    // --- questions to other members
    SendHeartbeat {
        to: Peer,
        seq: u64,
        request: HeartbeatRequest,
        timeout_ms: Millis,
    },
    SendVoteRequest {
        to: Peer,
        election: u64,
        request: VoteRequest,
        timeout_ms: Millis,
    },
    /// `replSetUpdatePosition` to the sync source; the next is made only after progress or a keep-alive.
    SendPositions {
        to: Host,
        update: UpdatePosition,
    },
    /// `replSetStepUp` after a step-down; nobody waits for the answer.
    SendStepUp {
        to: Peer,
    },
    /// A heartbeat to a host that may not be a member yet, to get its configuration.
    FetchConfig {
        from: Host,
        request: HeartbeatRequest,
    },
    /// Heartbeats that carry a configuration not yet in force.
    CheckQuorum {
        id: u64,
        to: Peer,
        request: HeartbeatRequest,
        timeout_ms: Millis,
    },
    /// Which member of this configuration is this node?
    LocateSelf {
        id: u64,
        config: Arc<ReplSetConfig>,
    },

    // --- answers to other members
    HeartbeatReply {
        token: Token,
        result: Result<HeartbeatReply, Error>,
    },
    VoteReply {
        token: Token,
        result: Result<VoteReply, Error>,
    },
    PositionsReply {
        token: Token,
        result: Result<(), Error>,
    },

    // --- what this node is
    /// State or writability changed. `writable` true only between the first entry of the term and a step-down.
    State(StateChange),
    /// Anything `hello` shows changed.
    TopologyVersion(i64),
    /// A configuration is in force (already durable).
    Config {
        config: Arc<ReplSetConfig>,
        self_index: Option<usize>,
    },
    Term(Term),
    /// Entries up to here are on a majority. It may lie beyond this node's own newest entry.
    CommitPoint(Position),
    /// An election was won: fetch what other members have beyond this node, until [`Action::Drain`].
    CatchUp {
        term: Term,
    },
    /// Stop the fetcher, apply everything that was fetched, answer [`crate::Event::Drained`].
    Drain {
        term: Term,
    },
    /// This node is about to leave for a set of its own: stop the fetcher, apply everything that was fetched, answer
    /// [`crate::Event::DrainedToLeave`].
    DrainToLeave {
        id: u64,
    },
    /// This node has left for a set of its own: what is known of the commit point and of members' positions is the old set's.
    JoinedRecipientSet,
    /// Whether this node has what its set had when it started, or rolled back: tenants may be read here ([`crate::up_to_date`]).
    UpToDate(bool),
    /// Under the exclusive state lock: set the term of new entries, write the "new primary" entry, answer
    /// [`crate::Event::FirstEntry`].
    BecomeWritable {
        term: Term,
    },
    /// Take the state lock exclusively, killing operations that hold it; answer [`crate::Event::StateLockHeld`].
    TakeStateLock {
        id: u64,
    },
    ReleaseStateLock {
        id: u64,
    },

    // --- sync source
    SyncSource {
        token: Token,
        choice: SourceChoice,
    },
    /// Stop fetching from the present source and ask for another.
    ChangeSyncSource {
        reason: &'static str,
    },

    // --- ends of waiting
    WaitDone {
        id: u64,
        result: Result<(), Error>,
    },
    Reply {
        token: Token,
        result: Result<CommandReply, Error>,
    },

    /// Worth a log line.
    Log(Note),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateChange {
    pub from: MemberState,
    pub to: MemberState,
    pub term: Term,
    pub writable: bool,
}

/// Why a configuration is persisted: decides whether an oplog entry goes with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConfigNote {
    /// First of the set: the entry "initiating set" comes before it, with term -1.
    Initiate,
    /// By a command on a primary: the entry "Reconfig set".
    Reconfig,
    /// Learnt from another member, or the new primary's term: no entry.
    Silent,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SourceChoice {
    Use(Peer),
    /// Ask again in a second.
    None(&'static str),
    /// Nobody can be followed any more: this node's data is to be given up and the set's copied again.
    CopyAgain(WhyCopyAgain),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhyCopyAgain {
    /// This node's log has parted from everybody's, and nobody can tell where, but before this entry.
    Parted { before: OpTime },
    /// Everybody's log begins after this node's ends.
    TooStale,
}

/// What a command answers beside `ok`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommandReply {
    Done,
    SyncFrom { previous: Option<String>, warning: Option<String> },
    Freeze { info: Option<&'static str>, warning: Option<&'static str> },
}

/// Events of the protocol for the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    ElectionStarted {
        reason: Reason,
        term: Term,
        dry_run: bool,
    },
    ElectionLost {
        term: Term,
        why: String,
    },
    ElectionWon {
        term: Term,
        votes: usize,
    },
    Voted {
        term: Term,
        candidate: i64,
        granted: bool,
        dry_run: bool,
        why: String,
    },
    MemberDown {
        id: i64,
        why: String,
    },
    MemberUp {
        id: i64,
        state: MemberState,
    },
    PrimarySuspected {
        id: i64,
    },
    PrimaryGone {
        id: i64,
        claims: usize,
    },
    PrimaryAnswers {
        id: i64,
    },
    SteppingDown {
        why: String,
    },
    CaughtUp {
        to: OpTime,
        complete: bool,
    },
    Takeover {
        reason: Reason,
        at: Millis,
    },
    NotElectable {
        why: String,
    },
    /// This member has seen so many elections within ten minutes.
    ManyElections {
        offices: usize,
    },
    /// Another member named a term far above this one's.
    TermNotBelieved {
        term: Term,
        own: Term,
    },
    /// Another member has this newer configuration, which is not valid here: the present one stays.
    ConfigRefused {
        id: ConfigId,
        why: String,
    },
    /// By this configuration this node leaves for the set of this name, once a majority of those that stay has it.
    SplitHeard {
        id: ConfigId,
        set_name: String,
    },
    /// A newer configuration takes the place of the one by which this node would have left.
    SplitForgotten {
        id: ConfigId,
    },
    /// This node has left for the set of this name.
    SetLeft {
        set_name: String,
    },
    /// A configuration has this node leave for the set of this name, but the process was told its set's name: it is in none now.
    SplitRefused {
        set_name: String,
    },
}
