//! What hangs on one operation while it runs: the newest time at which a shard did its part, and its transaction.

use crate::concern_defaults::ConcernDefaults;
use crate::transactions::Transaction;
use pando_base::Timestamp;
use pando_bson::{RawDoc, Value};
use pando_command::OpCtx;
use pando_routing::ShardId;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

/// Hangs on the operation's context.
#[derive(Default)]
pub(crate) struct OpState {
    operation: AtomicU64,
    transaction: OnceLock<Arc<Transaction>>,
    /// What all parts of a read of a snapshot read at; zero where nothing is known.
    snapshot: Timestamp,
    defaults: Arc<ConcernDefaults>,
}

impl OpState {
    /// One that begins now.
    pub(crate) fn at(now: Timestamp, defaults: Arc<ConcernDefaults>) -> OpState {
        OpState { snapshot: now, defaults, ..OpState::default() }
    }
    /// `operationTime` of the reply; zero when no shard was asked.
    pub(crate) fn operation(&self) -> Timestamp {
        Timestamp(self.operation.load(SeqCst))
    }
    pub(crate) fn set_transaction(&self, transaction: Arc<Transaction>) {
        let _ = self.transaction.set(transaction);
    }
}

/// What an operation goes by that names no concern.
pub(crate) fn concern_defaults(ctx: &OpCtx) -> Arc<ConcernDefaults> {
    ctx.attached::<OpState>().map_or_else(Arc::default, |state| state.defaults.clone())
}

/// The transaction that an operation is a statement of.
pub(crate) fn transaction(ctx: &OpCtx) -> Option<&Arc<Transaction>> {
    ctx.attached::<OpState>()?.transaction.get()
}

/// Which moment a read of a snapshot is of: the one that was asked for, or that at which the operation began, if that is not
/// before what the client has seen.
pub(crate) fn snapshot(ctx: &OpCtx) -> Option<Timestamp> {
    let reads = &ctx.read_concern;
    if reads.level != Some(pando_command::ReadLevel::Snapshot) || ctx.in_txn() {
        return None;
    }
    let begun = ctx.attached::<OpState>().map_or(Timestamp::ZERO, |s| s.snapshot);
    let now = begun.max(reads.after_cluster_time.unwrap_or(Timestamp::ZERO));
    reads.at_cluster_time.or(Some(now).filter(|t| !t.is_zero()))
}

/// A shard has answered.
pub(crate) fn hear(ctx: &OpCtx, shard: Option<&ShardId>, reply: &RawDoc) {
    if let (Some(state), Some(Value::Timestamp(t))) = (ctx.attached::<OpState>(), reply.get("operationTime"))
    {
        state.operation.fetch_max(t.0, SeqCst);
    }
    if let (Some(shard), Some(transaction)) = (shard, transaction(ctx)) {
        transaction.heard(shard, reply);
    }
}
