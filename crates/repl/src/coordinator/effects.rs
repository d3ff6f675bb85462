//! What the coordinator needs of the server around it.

use pando_base::{Error, OpTime, Result, Term};
use pando_bson::DocBuf;
use pando_env::BoxFuture;
use pando_oplog::EntryView;
use pando_topology::message::LastVote;
use pando_topology::{ConfigNote, Position, ReplSetConfig, StateChange, WhyCopyAgain};
use std::sync::Arc;

/// Implemented by the server. What is not a future is short and never blocks.
pub trait Effects: Send + Sync + 'static {
    /// On disk when it is done (R-ELEC-8).
    fn persist_vote(&self, vote: LastVote) -> BoxFuture<'_, Result<()>>;
    /// On disk when it is done, with the oplog entry that `note` asks for. After the first one of a set, the
    /// position of this node's log.
    fn persist_config(
        &self,
        config: Arc<ReplSetConfig>,
        note: ConfigNote,
    ) -> BoxFuture<'_, Result<Option<Position>>>;
    /// This node's place in a configuration.
    fn locate_self(&self, config: Arc<ReplSetConfig>) -> BoxFuture<'_, Option<usize>>;

    /// The set's commit point has moved on.
    fn commit_point(&self, at: OpTime);
    /// Before anybody sees that this member takes no writes any more: the write gate closes, and the positions of the data
    /// path go on from where the own log is. Who saw the change first would read them as they were a term ago.
    fn writes_end(&self);
    /// This node has left its set for one of its own (SV-SPLIT-11); `hello` shows that set by now. Under the coordinator's lock.
    fn joined_recipient_set(&self) {}
    /// Member state or writability changed: the write gate follows. Before it is seen where writes are taken now, and after
    /// it where they are not.
    fn state_changed(&self, change: &StateChange);

    /// Whether this node should copy from another from now on. Returns when that is so.
    fn follow(&self, on: bool) -> BoxFuture<'_, Result<()>>;
    /// Whether there is nothing in this node's log: it needs an initial sync.
    fn is_empty(&self) -> Result<bool>;
    /// Copies everything from another member; the position reached (R-IS).
    fn initial_sync(&self) -> BoxFuture<'_, Result<Position>>;
    /// Applies everything fetched, and stops fetching (R-CATCH-3).
    fn drain(&self) -> BoxFuture<'_, Result<()>>;
    /// New entries carry `term` from now on; writes its first one and returns its position (R-CATCH-4).
    fn become_writable(&self, term: Term) -> BoxFuture<'_, Result<Position>>;
    /// No write is under way and none begins, until it is released (R-LOCK).
    fn take_state_lock(&self) -> BoxFuture<'_, ()>;
    fn release_state_lock(&self);

    /// Entries of sessions have been applied: those about one document in order, writes of one batch beside each other.
    fn applied_sessions(&self, entries: &[EntryView<'_>]);
    /// What sessions have done, as a source of an initial sync tells it; the entries after that are applied on top.
    fn take_sessions(&self, sessions: &[DocBuf]);
    /// Makes that durable, with all entries up to this one.
    fn store_session_records(&self, upto: OpTime) -> BoxFuture<'_, Result<()>>;
    /// Settings that members keep in memory have been applied.
    fn applied_settings(&self);
    /// What this member keeps of itself when another's files take the place of its own. From now on no vote and no
    /// configuration is written: it would be forgotten.
    fn local_identity(&self) -> Result<DocBuf>;
    /// The files do not take that place after all.
    fn own_goes_on(&self);
    /// Gives this node's data up, to copy the set's again.
    fn resync(&self) -> Result<()>;
    /// The same, because no member can be followed any more; what may not be in the set's history is kept.
    fn copy_again(&self, why: WhyCopyAgain) -> Result<()>;
    fn diverged(&self, source: &str, why: &Error);
    fn fatal(&self, what: &str, why: &Error);
    fn is_stopping(&self) -> bool;
}
