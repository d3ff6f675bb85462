//! Which state of the data an operation reads.

use super::Reads;
use pando_access::Reading;
use pando_access::transaction::conflicts::on_prepared;
use pando_base::{Namespace, Result, Timestamp};
use pando_command::{OpCtx, ReadLevel};
use pando_storage::{OnPrepared, ReadAt};

/// Where a cursor reads from on: the latest state at each batch, or one fixed point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadPoint {
    Latest,
    /// What is committed by the majority at each batch.
    Committed,
    At(Timestamp),
}

/// Nothing in the request asks for anything but the newest data.
pub(crate) fn reads_latest(ctx: &OpCtx) -> bool {
    let level = ctx.read_concern.level();
    !ctx.in_txn()
        && matches!(level, ReadLevel::Local | ReadLevel::Available)
        && on_prepared(&ctx.read_concern) == OnPrepared::Ignore
}

impl Reads {
    /// What a name means to this operation.
    pub(crate) fn read(&self, ctx: &OpCtx, ns: &Namespace) -> Result<Reading> {
        self.access.read(ctx, ns, self.at(self.point(ctx)))
    }
    /// What the operation's read concern asks for.
    pub(crate) fn point(&self, ctx: &OpCtx) -> ReadPoint {
        if ctx.in_txn() {
            return ReadPoint::Latest;
        }
        match (ctx.read_concern.level(), ctx.read_concern.at_cluster_time) {
            (_, Some(at)) => ReadPoint::At(at),
            (ReadLevel::Snapshot, None) if !self.majority_reads => {
                ReadPoint::At(self.replication.last_applied().ts)
            }
            (ReadLevel::Snapshot, None) => ReadPoint::At(self.replication.committed()),
            (ReadLevel::Majority | ReadLevel::Linearizable, None) => ReadPoint::Committed,
            _ => ReadPoint::Latest,
        }
    }
    /// What a point means now.
    pub(crate) fn at(&self, point: ReadPoint) -> ReadAt {
        match point {
            ReadPoint::Latest => ReadAt::Latest,
            ReadPoint::Committed => ReadAt::At(self.replication.committed()),
            ReadPoint::At(ts) => ReadAt::At(ts),
        }
    }
}
