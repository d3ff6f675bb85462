//! What observers are told of transactions as a whole, and of rollbacks. Single writes they see when they are made or
//! applied, within the unit; these come afterwards, when nothing can fail any more.
//!
//! ```text
//!   command      prepare ─► prepared    commit ─► committed    abort, or given up ─► aborted
//!   entry        prepare ─► prepared    commit ─► committed    abort ─► aborted
//!   replay       undecided at the end ─► prepared     decided within ─► committed or aborted
//! ```
//! A node hears of each event once. A rollback and an initial sync forget what is prepared, silently; what still is
//! afterwards is told again, as of a replay. A transaction that wrote nothing is told of only where it is prepared. On a
//! member that follows, rows become visible with their batch, shortly after.

use pando_base::{OpTime, SessionId, Timestamp, Uuid};
use pando_bson::{DocBuf, Value};
use pando_oplog::entry::EntryView;
use std::collections::{BTreeMap, BTreeSet};

/// Session and number.
pub type TxnId = (SessionId, i64);

/// Where a node has it from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A command of this node, which is primary; or the transaction was given up here.
    Command,
    /// An entry that this node applies as it follows.
    Entry,
    /// A log from which this node makes its data: at a start, after a rollback, in an initial sync.
    Replay,
}

/// What a transaction writes, as far as the node knows: nothing where its entries lie before the log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TxnWrites {
    pub operations: usize,
    pub collections: BTreeSet<Uuid>,
}

impl TxnWrites {
    /// Of operations as an entry tells them.
    pub(crate) fn of(ops: &[DocBuf]) -> TxnWrites {
        let uuid = |op: &DocBuf| match op.get("ui") {
            Some(Value::Binary { bytes, .. }) => Uuid::from_slice(bytes),
            _ => None,
        };
        TxnWrites { operations: ops.len(), collections: ops.iter().filter_map(uuid).collect() }
    }
    pub(crate) fn add(&mut self, op: &EntryView<'_>) {
        self.operations += 1;
        self.collections.extend(op.ui);
    }
    pub(crate) fn join(&mut self, other: TxnWrites) {
        self.operations += other.operations;
        self.collections.extend(other.collections);
    }
}

/// A transaction's writes wait for their decision.
#[derive(Clone, Copy, Debug)]
pub struct TxnPrepared<'a> {
    pub id: &'a TxnId,
    pub origin: Origin,
    /// Of its last entry: the prepare timestamp.
    pub at: OpTime,
    pub writes: &'a TxnWrites,
}

/// A transaction has taken place.
#[derive(Clone, Copy, Debug)]
pub struct TxnCommitted<'a> {
    pub id: &'a TxnId,
    pub origin: Origin,
    /// The prepare timestamp, if it was prepared.
    pub prepare: Option<Timestamp>,
    /// Readers from here on see it.
    pub commit: Timestamp,
    /// The entry that says so.
    pub at: OpTime,
    pub writes: &'a TxnWrites,
}

/// A transaction has not taken place.
#[derive(Clone, Copy, Debug)]
pub struct TxnAborted<'a> {
    pub id: &'a TxnId,
    pub origin: Origin,
    /// The prepare timestamp, if it was prepared.
    pub prepare: Option<Timestamp>,
    /// The entry that says so; one that was not prepared leaves none.
    pub at: Option<OpTime>,
    pub writes: &'a TxnWrites,
}

/// `_id`s by namespace, each as `{_id: …}`.
pub type Ids = BTreeMap<String, BTreeSet<Vec<u8>>>;

/// Entries of this node were undone; rows, definitions and what is kept of sessions are as they were before.
#[derive(Clone, Copy, Debug)]
pub struct RolledBack<'a> {
    /// The newest entry that stays. Null when all data were given up.
    pub to: OpTime,
    pub namespaces: &'a BTreeSet<String>,
    /// Of documents that the undone entries were about.
    pub ids: &'a Ids,
    /// There were too many: some are missing in `ids`.
    pub ids_incomplete: bool,
    pub sessions: &'a BTreeSet<SessionId>,
    /// Something in the database `config` was undone.
    pub config: bool,
    /// The document that says which shard this node belongs to.
    pub shard_identity: bool,
}
