//! Read concerns: what must be true of this node's data before a read begins (R-RC-1..7).

use super::Replication;
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp};
use pando_command::{OpCtx, ReadLevel};

impl Replication {
    pub(crate) async fn await_readable(&self, ctx: &OpCtx) -> Result<()> {
        if !self.member.is_replicated() {
            return Ok(());
        }
        let rc = &ctx.read_concern;
        if let Some(after) = rc.after_cluster_time {
            self.await_cluster_time(ctx, after).await?;
        }
        // A snapshot of a time is whole once everything up to then is here.
        if let Some(at) = rc.at_cluster_time {
            self.await_cluster_time(ctx, at).await?;
        }
        if let Some(after) = rc.after_op_time {
            self.await_op_time(ctx, after).await?;
        }
        match rc.level() {
            ReadLevel::Local | ReadLevel::Available => Ok(()),
            ReadLevel::Linearizable => self.confirm_leadership(ctx).await,
            ReadLevel::Majority if !self.config.majority_reads => Err(Error::new(
                ErrorCode::ReadConcernMajorityNotEnabled,
                "Majority read concern is not enabled.",
            )),
            // Reads what is written without holes, not what is committed.
            ReadLevel::Snapshot if !self.config.majority_reads => Ok(()),
            ReadLevel::Majority | ReadLevel::Snapshot => {
                let after = rc.after_cluster_time.or(rc.after_op_time.map(|t| t.ts)).or(rc.at_cluster_time);
                // Without a commit point there is nothing that could be read.
                self.await_committed(ctx, after.unwrap_or(Timestamp(1))).await
            }
        }
    }

    /// `afterClusterTime`, `atClusterTime`: a time that came from another member or shard may lie ahead of everything here; the
    /// primary then writes an entry, so that it can be read.
    async fn await_cluster_time(&self, ctx: &OpCtx, after: Timestamp) -> Result<()> {
        let log = self.storage.log();
        if after > log.clock() {
            return Err(self.ahead_of_clock("afterClusterTime", after));
        }
        if after <= log.visible() {
            return ctx.interruptible(log.wait_applied(after)).await;
        }
        if self.member.is_primary() {
            self.write_noop("waiting for afterClusterTime")?;
        }
        self.await_applied_or_ask(ctx, after).await
    }

    /// Returns when this node has what was written up to that time.
    pub(crate) async fn await_applied(&self, upto: Timestamp) {
        self.storage.log().wait_applied(upto).await;
        loop {
            let seen = self.progress.changed().version();
            if self.last_applied().ts >= upto {
                return;
            }
            self.progress.changed().changed(seen).await;
        }
    }

    /// Entries of an older term are not after it, whatever their timestamps.
    pub(crate) async fn await_op_time(&self, ctx: &OpCtx, after: OpTime) -> Result<()> {
        ctx.interruptible(self.storage.log().wait_applied(after.ts)).await?;
        loop {
            let seen = self.progress.changed().version();
            if self.last_applied() >= after {
                return Ok(());
            }
            ctx.interruptible(self.progress.changed().changed(seen)).await?;
        }
    }

    async fn await_committed(&self, ctx: &OpCtx, after: Timestamp) -> Result<()> {
        if self.member.is_alone() {
            return ctx.interruptible(self.storage.log().wait_durable(after)).await?;
        }
        loop {
            let seen = self.progress.changed().version();
            if self.committed() >= after {
                return Ok(());
            }
            self.storage.log().ask_flush(after);
            ctx.interruptible(self.progress.changed().changed(seen)).await?;
        }
    }

    /// Linearizable: an entry of this operation's own reaches a majority first, so at some moment after the operation
    /// began this node was the primary; what was committed then is what is read (R-RC-5).
    async fn confirm_leadership(&self, ctx: &OpCtx) -> Result<()> {
        if !self.member.is_primary() {
            return Err(Error::new(
                ErrorCode::NotWritablePrimary,
                "cannot satisfy linearizable read concern on non-primary node",
            ));
        }
        let target = self.write_noop("linearizable read")?;
        ctx.interruptible(self.await_majority(target)).await??;
        self.await_committed(ctx, target.ts).await
    }

    pub(crate) fn ahead_of_clock(&self, field: &str, wanted: Timestamp) -> Error {
        Error::new(
            ErrorCode::InvalidOptions,
            format!(
                "readConcern {field} value must not be greater than the current clusterTime. Requested \
                 clusterTime: {{ ts: {wanted} }}; current clusterTime: {{ ts: {} }}",
                self.storage.log().clock()
            ),
        )
    }
}
