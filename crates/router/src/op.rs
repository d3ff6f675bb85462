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
    snapshot: AtomicU64,
    defaults: Arc<ConcernDefaults>,
}

impl OpState {
    /// One that begins now.
    pub(crate) fn at(now: Timestamp, defaults: Arc<ConcernDefaults>) -> OpState {
        OpState { snapshot: AtomicU64::new(now.0), defaults, ..OpState::default() }
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
    if !reads_snapshot(ctx) {
        return None;
    }
    let reads = &ctx.read_concern;
    let begun = ctx.attached::<OpState>().map_or(Timestamp::ZERO, |s| Timestamp(s.snapshot.load(SeqCst)));
    let now = begun.max(reads.after_cluster_time.unwrap_or(Timestamp::ZERO));
    reads.at_cluster_time.or(Some(now).filter(|t| !t.is_zero()))
}

fn reads_snapshot(ctx: &OpCtx) -> bool {
    ctx.read_concern.level == Some(pando_command::ReadLevel::Snapshot) && !ctx.in_txn()
}

/// Nobody can show the moment that was chosen for an operation: it is that of `now` from here on. False where the client has chosen it.
pub(crate) fn renew_snapshot(ctx: &OpCtx, now: Timestamp) -> bool {
    let Some(state) = ctx.attached::<OpState>() else { return false };
    let chosen_here = reads_snapshot(ctx) && ctx.read_concern.at_cluster_time.is_none();
    chosen_here && state.snapshot.fetch_max(now.0, SeqCst) < now.0
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
