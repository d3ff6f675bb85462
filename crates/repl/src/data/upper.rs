//! What the data path asks of the coordinator above it: decisions about sources, and somebody to tell.
//!
//! Calls are short and never block; they may come from any task.

use crate::data::metadata::Metadata;
use pando_base::{Error, OpTime, Result, Term};
use pando_bson::DocBuf;
use pando_env::BoxFuture;
use pando_env::sync::Notify;
use pando_oplog::EntryView;
use std::time::Duration;

pub trait Upper: Send + Sync + 'static {
    /// Whom to follow (R-SYNC-1..9); `None` = nobody is eligible now.
    fn choose_source(&self, last_fetched: OpTime) -> Option<String>;
    /// Not to be chosen for a while (R-SYNC-11).
    fn deny_source(&self, host: &str, how_long: Duration, why: &str);
    /// After each batch: is there a better source (R-SYNC-20)?
    fn should_change_source(&self, source: &str, m: &Metadata, last_fetched: OpTime) -> bool;
    /// A reply of the source brought this (R-META-1, R-META-2).
    fn saw_metadata(&self, source: &str, m: &Metadata, last_fetched: OpTime);

    /// Whether the reply came from a member of another set: one that has left ours, or that ours has left. Nothing of it is taken.
    fn is_of_another_set(&self, m: &Metadata) -> bool;

    /// A connection to this member broke or was refused: it may be gone.
    fn connection_lost(&self, host: &str);
    /// Bumped when something was heard of the other members: another choice of source may be possible.
    fn news(&self) -> Notify;
    /// Nobody is followed now.
    fn source_left(&self);

    /// The body of `replSetUpdatePosition` for the source: this member and those that report to it. `None` while
    /// there is nothing to report (R-UPOS-3).
    fn position_report(&self) -> Option<DocBuf>;
    /// Written, durable or applied has moved.
    fn progressed(&self);
    /// Entries of sessions have been applied: those about one document in order, writes of one batch beside each other.
    fn applied_sessions(&self, entries: &[EntryView<'_>]);
    /// What sessions have done, as a source of an initial sync tells it; the entries after that are applied on top.
    fn take_sessions(&self, sessions: &[DocBuf]);
    /// Makes that durable, with all entries up to this one.
    fn store_session_records(&self, upto: OpTime) -> BoxFuture<'_, Result<()>>;
    /// Settings of the set have been applied.
    fn applied_settings(&self);

    /// This source's log begins after ours ends.
    fn begins_too_late(&self, source: &str, oldest: OpTime);
    /// No member has the entries that come after ours, or one has again (R-SYNC-9).
    fn too_stale(&self, stale: bool);
    /// The data is of one time again, after a rollback that fetched documents.
    fn data_is_valid(&self);
    /// What this member keeps of itself under another's files; until [`Upper::own_goes_on`] it neither votes nor takes
    /// configurations.
    fn local_identity(&self) -> Result<DocBuf>;
    fn own_goes_on(&self);
    /// This node's data is of no use any more: the set's is to be copied again.
    fn resync(&self);
    /// The source's history parted from ours: only a rollback could go on (R-RB-1).
    fn diverged(&self, source: &str, why: &Error);
    /// Nothing can be done about this; the node must stop.
    fn fatal(&self, what: &'static str, why: &Error);

    fn term(&self) -> Term;
    fn committed(&self) -> OpTime;
    fn election_timeout(&self) -> Duration;
    /// `secondaryDelaySecs` (R-APPLY-3).
    fn delay(&self) -> Duration;
}
