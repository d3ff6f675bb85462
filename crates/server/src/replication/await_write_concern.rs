//! What a write waits for before its reply (R-WC-2..9).

use super::Replication;
use pando_command::concern::Provenance;
use pando_command::{OpCtx, W, WriteConcern, WriteConcernError};
use pando_repl::await_replication::{self, Wait};
use pando_repl::topology::Event;
use pando_repl::topology::write_concern::{Waiter, Want};
use std::time::Duration;

impl Replication {
    /// What a write waits for when neither the client nor the set has said so.
    pub(crate) fn implicit_write_concern(&self) -> WriteConcern {
        let majority = self.member.config().is_some_and(|c| c.implicit_write_concern_is_majority());
        let w = if majority { W::Majority } else { W::Nodes(1) };
        WriteConcern::of(w, Provenance::ImplicitDefault)
    }

    /// Waits until enough members hold the operation's last write (R-WC-2..9), and counts that.
    pub(crate) async fn await_write_concern(
        &self,
        ctx: &OpCtx,
        wc: &WriteConcern,
    ) -> Option<WriteConcernError> {
        let from = self.env.clock.mono();
        let said = self.await_concern(ctx, wc).await;
        let documents = &self.instance.metrics.documents;
        // One member is the one that has written already.
        if !matches!(wc.w, W::Nodes(0 | 1)) {
            documents.write_concern_waits.took(self.env.clock.mono().saturating_sub(from));
        }
        if said.as_ref().is_some_and(WriteConcernError::is_timeout) {
            documents.write_concern_timeouts.inc();
        }
        said
    }

    async fn await_concern(&self, ctx: &OpCtx, wc: &WriteConcern) -> Option<WriteConcernError> {
        let config = self.member.config();
        if config.is_some() && !self.member.is_alone() {
            return self.await_members(ctx, wc).await;
        }
        let wait = match &config {
            Some(config) => await_replication::plan(wc, config),
            // `admit` has refused what a standalone node cannot do.
            None => Ok(await_replication::check_standalone(wc).unwrap_or(Wait::Applied)),
        };
        let failed = match wait {
            Err(e) => Some(e),
            Ok(Wait::Applied) => None,
            Ok(Wait::Durable) => self.await_durable(ctx, wc).await,
        };
        if failed.is_some() || config.is_none() || matches!(wc.w, W::Nodes(_)) {
            return failed;
        }
        self.commit_alone(ctx);
        // Others may have come meanwhile.
        if self.member.is_alone() { None } else { self.await_members(ctx, wc).await }
    }

    /// In a set of one what is on disk is committed. The flusher tells the core so, perhaps a moment after it has woken those who
    /// wait: in a set that grows just then it would be too late, and what was acknowledged would not count as committed.
    fn commit_alone(&self, ctx: &OpCtx) {
        let target = ctx.last_op().unwrap_or_else(|| self.last_applied());
        if self.inspect(|core| core.commit_point().op < target) == Some(true) {
            self.tell_own_progress();
        }
    }

    async fn await_members(&self, ctx: &OpCtx, wc: &WriteConcern) -> Option<WriteConcernError> {
        let config = self.member.config()?;
        let concern = await_replication::concern(wc, &config);
        if concern.want == Want::Nodes(1) && !concern.journaled || concern.want == Want::Nodes(0) {
            return None;
        }
        // A write that changed nothing waits for what it has seen (R-WC-2).
        let target = ctx.last_op().unwrap_or_else(|| self.last_applied());
        let Ok(coordinator) = self.coordinator() else { return None };
        if concern.want == Want::Majority || concern.journaled {
            self.storage.log().ask_flush(target.ts);
        }
        let waiting = coordinator.ask(|id| Event::Await(Waiter { id, target, concern }));
        let waiting = ctx.interruptible(waiting);
        let said = if wc.wtimeout_ms > 0 {
            match self.env.timeout(Duration::from_millis(wc.wtimeout_ms as u64), waiting).await {
                Some(said) => said,
                None => return Some(await_replication::timed_out(wc)),
            }
        } else {
            waiting.await
        };
        match said.and_then(pando_repl::Said::waited) {
            Ok(()) => None,
            Err(e) => Some(await_replication::failed(wc, e.code, e.message.to_string())),
        }
    }

    /// Waits until the operation's last write is on disk.
    async fn await_durable(&self, ctx: &OpCtx, wc: &WriteConcern) -> Option<WriteConcernError> {
        let log = self.storage.log();
        // A write that changed nothing waits for what it has seen (R-WC-2).
        let target = ctx.last_op().map_or_else(|| log.visible(), |t| t.ts);
        if log.durable() >= target {
            return None;
        }
        let wait = ctx.interruptible(log.wait_durable(target));
        let waited = if wc.wtimeout_ms > 0 {
            match self.env.timeout(Duration::from_millis(wc.wtimeout_ms as u64), wait).await {
                Some(r) => r,
                None => return Some(await_replication::timed_out(wc)),
            }
        } else {
            wait.await
        };
        match waited.and_then(|r| r) {
            Ok(()) => None,
            Err(e) => Some(await_replication::failed(wc, e.code, e.message.to_string())),
        }
    }
}
