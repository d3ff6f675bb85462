//! The server as the pipeline sees it: what may run here, and what a write waits for.

use crate::Server;
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_catalog::Collection;
use pando_command::cluster_time::Signature;
use pando_command::concern::Provenance;
use pando_command::{
    Attempt, Flags, Instance, Node, OpCtx, Param, ReadLevel, ReadMode, ReplyTimes, Request, TopologyVersion,
    W, WriteConcern, WriteConcernError,
};
use pando_env::BoxFuture;
use pando_repl::await_replication::{self, Wait};
use pando_repl::topology::write_concern::{Waiter, Want};
use pando_repl::topology::{Event, MemberState};
use std::sync::Arc;
use std::time::Duration;

impl Node for Server {
    fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    fn is_member_address(&self, remote: &str) -> bool {
        Server::is_member_address(self, remote)
    }
    fn admit(&self, ctx: &OpCtx, flags: Flags) -> Result<()> {
        if let Some(lsid) = &ctx.lsid {
            let max = self.instance.params.int(pando_command::Param::maxSessions) as usize;
            self.sessions.touch(lsid, ctx.started, max)?;
        }
        if !self.repl.is_replicated() {
            return check_standalone(ctx);
        }
        if !self.repl.is_primary() && ctx.db != "local" {
            self.admit_elsewhere(ctx, flags)?;
        }
        match ctx.read_concern.at_cluster_time {
            Some(at) if at > self.storage.log().clock() => Err(self.ahead_of_clock("atClusterTime", at)),
            _ => Ok(()),
        }
    }

    fn advance_cluster_time(&self, seen: Timestamp, signature: &Signature) -> Result<()> {
        if !self.repl.is_replicated() || seen <= self.storage.log().clock() {
            return Ok(());
        }
        self.check_cluster_time(seen, signature)?;
        let drift = self.instance.params.int(Param::maxAcceptableLogicalClockDriftSecs);
        let now_secs = (self.env.clock.wall_ms() / 1000).max(0) as u32;
        if seen.secs() > now_secs.saturating_add(drift as u32) {
            return Err(Error::new(
                ErrorCode::ClusterTimeFailsRateLimiter,
                format!(
                    "New $clusterTime, {}, is too far from this node's wall clock time, {now_secs}.",
                    seen.secs()
                ),
            ));
        }
        // Unsigned, nobody has proved where this comes from: far ahead, it is heard and not taken over. A clock never goes back.
        let near = seen.secs() <= now_secs.saturating_add(limits::CLUSTER_TIME_AHEAD_SECS);
        if near || self.config.signs_cluster_times {
            self.storage.log().advance_clock(seen);
        }
        Ok(())
    }

    fn check_out<'a>(&'a self, ctx: &'a OpCtx, req: &'a Request<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.check_out_session(ctx, req))
    }
    fn check_in(&self, ctx: &OpCtx, failed: Option<&Error>) {
        // An end that is written wrongly is no end, and what is no pipeline at all was never begun.
        let begun = |e: &&Error| {
            let no_pipeline = e.code.0 == 40324 && !ctx.start_transaction;
            !pando_command::ends_transaction(ctx.command) && !no_pipeline
        };
        self.check_in_session(ctx, failed.filter(begun).is_some());
    }
    fn attempt(&self, ctx: &OpCtx) -> Attempt {
        self.attempt_of(ctx)
    }
    fn try_again<'a>(
        &'a self,
        ctx: &'a OpCtx,
        attempt: Attempt,
        error: &Error,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        self.after_decision(ctx, attempt, error)
    }
    fn await_read_concern<'a>(&'a self, ctx: &'a OpCtx) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.await_readable(ctx))
    }

    fn default_write_concern(&self) -> WriteConcern {
        if let Some(wc) = &self.settings.rw_defaults.get().write {
            return WriteConcern { provenance: Provenance::CustomDefault, ..wc.clone() };
        }
        let majority = self.repl.config().is_some_and(|c| c.implicit_write_concern_is_majority());
        let w = if majority { W::Majority } else { W::Nodes(1) };
        WriteConcern::of(w, Provenance::ImplicitDefault)
    }

    // tour: insert 8/9
    fn await_write_concern<'a>(
        &'a self,
        ctx: &'a OpCtx,
        wc: &'a WriteConcern,
    ) -> BoxFuture<'a, Option<WriteConcernError>> {
        Box::pin(async move {
            let from = self.env.clock.mono();
            let said = self.await_concern(ctx, wc).await;
            let waits = &self.instance.metrics.write_concern_waits;
            // One member is the one that has written already.
            if !matches!(wc.w, W::Nodes(0 | 1)) {
                waits.waited.took(self.env.clock.mono().saturating_sub(from));
            }
            if said.as_ref().is_some_and(WriteConcernError::is_timeout) {
                waits.timed_out.inc();
            }
            said
        })
    }

    fn reply_times(&self, ctx: &OpCtx) -> Option<ReplyTimes> {
        if !self.repl.is_initiated() {
            return None;
        }
        let log = self.storage.log();
        let operation_time = match ctx.last_op() {
            Some(t) => t.ts,
            None if ctx.read_concern.level() == ReadLevel::Majority => self.committed(),
            None => self.last_applied().ts,
        };
        let cluster_time = log.clock().max(operation_time);
        Some(ReplyTimes { cluster_time, signature: self.sign_cluster_time(cluster_time), operation_time })
    }

    fn append_metadata(&self, ctx: &OpCtx, reply: &mut DocBuilder) {
        self.append_replication_metadata(ctx, reply);
    }

    fn topology_version(&self) -> Option<TopologyVersion> {
        self.repl.is_replicated().then(|| self.repl.topology_version())
    }

    fn profiling_level(&self, db: &str) -> i32 {
        self.settings.profiling.level(db)
    }
    fn has_profile_filter(&self, db: &str) -> bool {
        self.settings.profiling.filter(db).is_some()
    }
    fn passes_profile_filter(&self, db: &str, entry: &RawDoc) -> bool {
        // An operation that the filter cannot judge (an `$expr` fails on it) is not chosen.
        self.settings.profiling.filter(db).is_none_or(|f| f.matches(entry).unwrap_or(false))
    }
    fn profile(&self, db: &str, entry: DocBuf) {
        self.settings.profiling.write(db, entry);
    }
}

/// What a node without a replica set must refuse.
fn check_standalone(ctx: &OpCtx) -> Result<()> {
    if ctx.txn_number.is_some() {
        return Err(Error::new(
            ErrorCode::IllegalOperation,
            "Transaction numbers are only allowed on a replica set member or mongos",
        ));
    }
    if let Some(wc) = &ctx.write_concern {
        await_replication::check_standalone(wc)?;
    }
    let rc = &ctx.read_concern;
    if rc.after_cluster_time.is_some() {
        return Err(Error::new(
            ErrorCode::IllegalOperation,
            "Cannot specify afterClusterTime readConcern without replication enabled",
        ));
    }
    match rc.level() {
        ReadLevel::Snapshot => Err(Error::new(
            ErrorCode::NotAReplicaSet,
            "node needs to be a replica set member to use readConcern: snapshot",
        )),
        ReadLevel::Linearizable => Err(Error::new(
            ErrorCode::NotAReplicaSet,
            "node needs to be a replica set member to use read concern",
        )),
        _ => Ok(()),
    }
}

impl Server {
    /// On a member that is not primary: writes need one, reads need one or permission to read here.
    fn admit_elsewhere(&self, ctx: &OpCtx, flags: Flags) -> Result<()> {
        let opted_in = ctx.read_mode != ReadMode::Primary;
        // Clients that never said helloOk get the old words; drivers of that age look for them.
        let modern = ctx.client.hello_ok() || !ctx.client.is_connection();
        if !flags.any(Flags::SECONDARY_OK | Flags::SECONDARY_OPT_IN) {
            let text = if modern { "not primary" } else { "not master" };
            return Err(Error::new(ErrorCode::NotWritablePrimary, text));
        }
        if !flags.has(Flags::SECONDARY_OK) && !opted_in {
            let text =
                if modern { "not primary and secondaryOk=false" } else { "not master and slaveOk=false" };
            return Err(Error::new(ErrorCode::NotPrimaryNoSecondaryOk, text));
        }
        if flags.has(Flags::READ) && !self.repl.is_readable() {
            return Err(Error::new(
                ErrorCode::NotPrimaryOrSecondary,
                "node is not in primary or recovering state",
            ));
        }
        Ok(())
    }

    /// `local` is open to reads at any time, but the log is not while it is being cut.
    pub(crate) fn check_oplog_readable(&self, coll: &Collection) -> Result<()> {
        if coll.is_oplog() && matches!(self.repl.state().member, MemberState::Rollback | MemberState::Startup)
        {
            return Err(Error::new(
                ErrorCode::NotPrimaryOrSecondary,
                "Oplog collection reads are not allowed while in the rollback or startup state.",
            ));
        }
        Ok(())
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

    /// Waits until enough members hold the operation's last write (R-WC-2..9).
    async fn await_concern(&self, ctx: &OpCtx, wc: &WriteConcern) -> Option<WriteConcernError> {
        let wait = match self.repl.config() {
            Some(_) if !self.repl.is_alone() => return self.await_members(ctx, wc).await,
            Some(config) => await_replication::plan(wc, &config),
            // `admit` has refused what a standalone node cannot do.
            None => Ok(await_replication::check_standalone(wc).unwrap_or(Wait::Applied)),
        };
        match wait {
            Err(e) => Some(e),
            Ok(Wait::Applied) => None,
            Ok(Wait::Durable) => self.await_durable(ctx, wc).await,
        }
    }

    async fn await_members(&self, ctx: &OpCtx, wc: &WriteConcern) -> Option<WriteConcernError> {
        let config = self.repl.config()?;
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
