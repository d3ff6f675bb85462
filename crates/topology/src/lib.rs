//! The replica-set protocol of one member, as a state machine without I/O.
//!
//! [`Core::step`] takes the time and one [`Event`] and appends [`Action`]s. Whoever owns the core (the shell) feeds it
//! and does what it asks; nothing else in the server decides about terms, votes, states, sync sources or
//! acknowledgements.
//!
//! ```text
//!           clock ─┐                                  ┌─► messages to members, replies
//!  members' calls ─┼──► Event ──► Core::step ──► Action ─► disk (barriers) ──┐
//!    own log, disk ┘       ▲                          └─► state, commit point │
//!                          └────────────── Persisted, Drained, … ◄───────────┘
//! ```
//!
//! # The shell's duties
//!
//! 1. **One at a time, in order.** Call `step` from one place at a time and carry out the actions in the order given.
//!    After every call, arrange for [`Event::Tick`] at [`Core::next_deadline`].
//! 2. **Time** is milliseconds that never go back: Unix time at the start plus monotonic time since.
//! 3. **Barriers.** [`Action::PersistVote`] and [`Action::PersistConfig`] are answered by [`Event::Persisted`] only when
//!    the write would survive a power cut. The core holds back what depends on them.
//! 4. **Positions.** Tell [`Event::Progress`] whenever written, applied or durable moved; on a primary after each
//!    commit (it is cheap). `written` is what others may fetch; `durable` never beyond what a restart keeps.
//!    After a rollback tell [`Event::Rewound`].
//! 5. **Becoming primary.** [`Action::CatchUp`]: go on fetching (the fetcher asks for a source as usual).
//!    [`Action::Drain`]: stop the fetcher, apply everything, then [`Event::Drained`]. [`Action::BecomeWritable`]: under
//!    the exclusive state lock set the term of new entries, write the "new primary" entry, then
//!    [`Event::FirstEntry`]. Only then [`Action::State`] says `writable`.
//! 6. **Stepping down.** [`Action::TakeStateLock`]: from now on refuse new writes, interrupt what holds the lock,
//!    and say [`Event::StateLockHeld`]. [`Action::State`] and then [`Action::ReleaseStateLock`] follow.
//! 7. **Fetching.** Ask with [`Event::SyncSourceNeeded`]; [`Action::SyncSource`] is among the actions of the same call.
//!    After every batch, once its first entry has been found to follow this node's log, tell [`Event::Fetched`] with the
//!    metadata of the reply; [`Action::ChangeSyncSource`] means stop
//!    and ask again; without a source, ask again now rather than in a second. [`Core::should_change_source`] and [`Core::should_change_source_on_error`] answer without changing
//!    anything. A source that failed a probe: [`Event::SyncSourceDenied`]; one whose log has parted from this
//!    node's and does not show where: [`Event::NoCommonPoint`]. While fetching, the source is told
//!    [`Event::SyncSourceChosen`]; when the fetcher ends, `SyncSourceChosen(None)`.
//! 8. **Commit point.** [`Action::CommitPoint`] may lie beyond this node's log; the stable timestamp is the smaller of
//!    it, what is applied here, and what has no holes. [`Core::committed_applied`] gives the first two.
//! 9. **Answering others.** Every incoming replication command becomes an event with a token of the shell's choice;
//!    the reply carries the same token, perhaps much later (a vote waits for the disk). Replies carry
//!    [`Core::metadata`] as `$replData` and, to fetchers, [`Core::oplog_metadata`] as `$oplogQueryData`.
//! 10. **Connections.** Report [`Event::ConnectionLost`] when any connection to a member is refused or reset, also an
//!     idle one: that is how a killed primary is noticed at once (see [`fast_failover`]).
//!
//! State is plain data (`Clone + Eq + Hash`, ordered maps, integer time), so models and simulations run this very code.
//!
//! Beside it stands [`index_builds`]: who votes for an index build, and when a primary may commit it.
//!
//! One rule, one file: [`heartbeat`], [`election`], [`vote`], [`takeover`], [`catch_up`], [`fast_failover`],
//! [`liveness`], [`step_down`], [`commit_point`], [`update_position`], [`write_concern`], [`sync_source`],
//! [`commit_quorum`], [`sync_source_change`], [`reconfig`], [`split`], [`recipient`], [`maintenance`], `up_to_date`, [`credible`], [`check`].
//!
//! What the rules remember is plain data in files that know no rule: `timer`, `candidacy`, `election_record`, `early_signs`,
//! `office`, `config_change`, `waiters`, `sources_aside`. `core` puts it together, `step` hands each event to its rule.

pub mod action;
mod candidacy;
pub mod catch_up;
pub mod check;
pub mod commit_point;
pub mod commit_quorum;
pub mod config;
mod config_change;
pub mod config_order;
pub mod core;
pub mod credible;
mod early_signs;
pub mod election;
mod election_record;
pub mod event;
pub mod fast_failover;
pub mod heartbeat;
mod horizons;
pub mod index_builds;
pub mod liveness;
pub mod maintenance;
pub mod member;
pub mod message;
pub mod mutants;
mod no_common_point;
mod office;
pub mod params;
mod periods;
pub mod recipient;
pub mod reconfig;
mod settings;
mod sources_aside;
pub mod split;
mod step;
pub mod step_down;
pub mod sync_source;
pub mod sync_source_change;
pub mod takeover;
pub mod timer;
mod too_stale;
mod up_to_date;
pub mod update_position;
pub mod vote;
mod waiters;
pub mod whole_start;
pub mod write_concern;

pub use action::{Action, Actions, CommandReply, ConfigNote, Note, SourceChoice, StateChange, WhyCopyAgain};
pub use config::{Member, ReplSetConfig};
pub use config_order::ConfigId;
pub use core::{Boot, Core};
pub use event::Event;
pub use member::{Host, MemberId, MemberState, Position, Positions};
pub use office::LeaderMode;
pub use params::Params;
pub use timer::Timer;
