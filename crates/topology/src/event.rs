//! What the world tells the core.

use crate::config::ReplSetConfig;
use crate::member::{Host, MemberId, MemberState, Position, Positions};
use crate::message::{
    Failure, HeartbeatReply, HeartbeatRequest, OplogQueryMetadata, ReplSetMetadata, StepDownRequest,
    UpdatePosition, VoteReply, VoteRequest,
};
use crate::params::Params;
use crate::timer::Timer;
use crate::waiters::Waiter;
use pando_base::{Millis, OpTime, Term};
use pando_bson::ObjectId;
use std::sync::Arc;

/// Chosen by the shell for each question it asks; comes back with the answer.
pub type Token = u64;
/// Chosen by the core for each thing it wants on disk.
pub type PersistId = u64;

#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The time given to [`crate::Core::step`] has come.
    Tick,
    /// One timer is due now, whatever the time (models and scripts).
    Fire(Timer),
    /// The draw asked for by [`crate::Action::Draw`].
    Random(u64),
    Params(Params),

    // --- this node's data
    /// Written, applied or durable moved on.
    Progress(Positions),
    /// After a rollback or an initial sync: positions are now exactly these.
    Rewound(Positions),
    /// This member has given its data up and copies another's: from now on it is in STARTUP2. Entries up to `promised` it
    /// had told others to hold.
    Emptied {
        promised: OpTime,
    },
    /// A member that came back from a backup holds what the set does: it may vote again, in terms after this one. Which vote
    /// it gave in this or an earlier one nobody knows.
    CaughtUp {
        term: Term,
    },
    /// The state this node has while not primary: STARTUP2 while it copies, RECOVERING, ROLLBACK, SECONDARY.
    FollowerState(MemberState),
    /// The buffer is applied and the fetcher stopped, as [`crate::Action::Drain`] asked in this term.
    Drained {
        term: Term,
    },
    /// The same for [`crate::Action::DrainToLeave`].
    DrainedToLeave {
        id: u64,
    },
    /// The "new primary" entry is written; writes may begin.
    FirstEntry {
        term: Term,
        at: Position,
    },
    /// The lock asked for by [`crate::Action::TakeStateLock`] is held.
    StateLockHeld {
        id: u64,
    },
    /// What [`crate::Action::PersistVote`] or [`crate::Action::PersistConfig`] asked for is on disk.
    Persisted(PersistId),
    PersistFailed(PersistId),

    // --- other members
    Heartbeat {
        token: Token,
        request: HeartbeatRequest,
    },
    HeartbeatReplied {
        from: MemberId,
        seq: u64,
        result: Result<HeartbeatReply, Failure>,
    },
    VoteRequested {
        token: Token,
        request: VoteRequest,
    },
    VoteReplied {
        from: MemberId,
        election: u64,
        result: Result<VoteReply, Failure>,
    },
    PositionsReceived {
        token: Token,
        update: UpdatePosition,
    },
    /// A connection to this member, whatever it served, was refused or broke.
    ConnectionLost {
        to: MemberId,
    },
    /// A batch from the sync source: its metadata, and the newest entry fetched with it.
    Fetched {
        from: Host,
        repl: ReplSetMetadata,
        oplog: OplogQueryMetadata,
        last_fetched: OpTime,
    },
    /// The answer to [`crate::Action::FetchConfig`].
    ConfigFetched {
        from: Host,
        result: Result<HeartbeatReply, Failure>,
    },
    /// The answer to [`crate::Action::LocateSelf`].
    SelfLocated {
        id: u64,
        index: Option<usize>,
    },
    /// One answer to [`crate::Action::CheckQuorum`].
    QuorumReplied {
        id: u64,
        from: MemberId,
        result: Result<HeartbeatReply, Failure>,
    },

    // --- sync source
    /// The fetcher needs a source; answered at once by [`crate::Action::SyncSource`].
    SyncSourceNeeded {
        token: Token,
        last_fetched: OpTime,
        initial_sync: bool,
    },
    /// The fetcher uses this source now, or none.
    SyncSourceChosen(Option<Host>),
    /// Not this one for a while (R-SYNC-11).
    SyncSourceDenied {
        host: Host,
        for_ms: Millis,
    },
    /// This source's log has parted from this node's, and from their ends down to `reached` no entry is the same.
    NoCommonPoint {
        host: Host,
        reached: OpTime,
    },
    /// This source's log begins with `oldest`, after this node's newest entry.
    BeginsTooLate {
        host: Host,
        oldest: OpTime,
    },
    /// Every candidate's oplog begins after this node's newest entry; `false` when that is over.
    TooStale(bool),

    // --- commands; each answered by [`crate::Action::Reply`] with the token
    StepDown {
        token: Token,
        request: StepDownRequest,
    },
    StepUp {
        token: Token,
        skip_dry_run: bool,
    },
    Freeze {
        token: Token,
        secs: i64,
    },
    Maintenance {
        token: Token,
        on: bool,
    },
    SyncFrom {
        token: Token,
        host: String,
    },
    AbortCatchUp {
        token: Token,
    },
    Initiate {
        token: Token,
        config: Arc<ReplSetConfig>,
        self_index: usize,
    },
    Reconfig {
        token: Token,
        config: Arc<ReplSetConfig>,
        self_index: Option<usize>,
        force: bool,
        bump: i64,
    },

    /// Members with the key `tag` leave for a set of the name `set_name` (SV-SPLIT-10). Where that configuration is in force already, it
    /// is only waited for.
    Split {
        token: Token,
        tag: String,
        set_name: String,
        replica_set_id: ObjectId,
        /// It may take the place of one by which all members of that set have left.
        before: Option<String>,
    },

    // --- write concern
    Await(Waiter),
    /// The waiter gave up (`wtimeout`, interruption).
    CancelAwait {
        id: u64,
    },

    // --- the end
    /// `hello` answers 91 until then (R-HELLO-7).
    Quiesce {
        until: Millis,
    },
    /// Fail whoever waits; no more elections.
    ShutDown,
}
