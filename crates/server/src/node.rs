//! The server as the pipeline sees it: what may run here, and what a write waits for.

use crate::Server;
use pando_auth::{Action, Authority};
use pando_base::{Error, ErrorCode, Namespace, Result, Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::cluster_time::Signature;
use pando_command::{
    Attempt, Client, Flags, Instance, Node, OpCtx, ReadLevel, ReplyTimes, Request, Roles, TopologyVersion,
    WriteConcern, WriteConcernError,
};
use pando_env::BoxFuture;
use pando_repl::await_replication;
use std::sync::Arc;

impl Node for Server {
    fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
    /// Config servers are a shard from the moment on at which they are told so.
    fn roles(&self) -> Roles {
        let own = self.config.roles();
        let is_shard = self.sharding.as_ref().is_some_and(|sharding| sharding.shard_name().is_some());
        if is_shard { own | Roles::S } else { own }
    }

    fn authority(&self, client: &Client) -> Result<Arc<Authority>> {
        self.principals.authority(client)
    }
    fn is_member_address(&self, remote: &str) -> bool {
        self.replication.is_member_address(remote)
    }
    fn admit(&self, ctx: &OpCtx, flags: Flags) -> Result<()> {
        if let Some(sharding) = self.sharding.as_ref().filter(|_| ctx.client.is_internal()) {
            sharding.hear(&ctx.args);
        }
        if let Some(lsid) = &ctx.lsid {
            let max = self.instance.params.int(pando_command::Param::maxSessions) as usize;
            self.sessions.cache.touch(lsid, ctx.started, max)?;
        }
        if !self.replication.member.is_replicated() {
            return check_standalone(ctx);
        }
        if !self.replication.member.is_primary() && ctx.db != "local" {
            self.replication.admit_elsewhere(ctx, flags)?;
        }
        match ctx.read_concern.at_cluster_time {
            Some(at) if at > self.storage.log().clock() => {
                Err(self.replication.ahead_of_clock("atClusterTime", at))
            }
            _ => Ok(()),
        }
    }

    fn collection_of(&self, db: &str, uuid: Uuid) -> Option<Namespace> {
        let found = self.access.definitions().name_of(uuid)?;
        (found.db() == db).then_some(found)
    }
    /// A member's word needs no signature: it has proven who it is.
    fn advance_cluster_time(&self, client: &Client, seen: Timestamp, signature: &Signature) -> Result<()> {
        let trusted = self.instance.asks_for_logins()
            && self.principals.authority(client)?.may_on_cluster(Action::AdvanceClusterTime);
        self.replication.advance_cluster_time(seen, (!trusted).then_some(signature))
    }

    fn check_out<'a>(&'a self, ctx: &'a OpCtx, req: &'a Request<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.crud.transactions.check_out(ctx, req))
    }
    /// Whoever coordinates has to know who has written.
    fn append_of_transaction(&self, ctx: &OpCtx, reply: &mut DocBuilder) {
        if self.config.cluster_role.is_none() {
            return;
        }
        if let Some(read_only) = crate::transaction::has_only_read(ctx) {
            reply.bool("readOnly", read_only);
        }
    }
    fn check_in(&self, ctx: &OpCtx, failed: Option<&Error>) {
        // An end that is written wrongly is no end, and what is no pipeline at all was never begun.
        let begun = |e: &&Error| {
            let no_pipeline = e.code.0 == 40324 && !ctx.start_transaction;
            !pando_command::ends_transaction(ctx.command) && !no_pipeline
        };
        self.crud.transactions.check_in(ctx, failed.filter(begun).is_some());
    }
    fn attempt(&self, ctx: &OpCtx) -> Attempt {
        self.access.attempt_of(ctx)
    }
    fn try_again<'a>(
        &'a self,
        ctx: &'a OpCtx,
        attempt: Attempt,
        error: &Error,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        let of_tenant = self.tenants.as_ref().and_then(|tenants| tenants.after_decision(ctx, error));
        of_tenant.or_else(|| self.access.after_decision(ctx, attempt, error))
    }
    fn await_access<'a>(
        &'a self,
        ctx: &'a OpCtx,
        flags: Flags,
        req: &'a Request<'a>,
    ) -> Option<BoxFuture<'a, Result<()>>> {
        self.tenants.as_ref()?.await_access(ctx, flags, req)
    }
    fn check_afterwards(&self, ctx: &OpCtx, req: &Request<'_>) -> Result<()> {
        self.tenants.as_ref().map_or(Ok(()), |tenants| tenants.check_afterwards(ctx, req))
    }
    fn learn<'a>(&'a self, ctx: &'a OpCtx) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(sharding) = &self.sharding {
                sharding.learn(ctx).await;
            }
        })
    }
    fn await_read_concern<'a>(&'a self, ctx: &'a OpCtx) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.replication.await_readable(ctx))
    }

    fn default_read_level(&self) -> Option<ReadLevel> {
        self.settings.rw_defaults.read_level()
    }
    fn default_write_concern(&self) -> WriteConcern {
        let set = self.settings.rw_defaults.write_concern();
        set.unwrap_or_else(|| self.replication.implicit_write_concern())
    }

    fn await_write_concern<'a>(
        &'a self,
        ctx: &'a OpCtx,
        wc: &'a WriteConcern,
    ) -> BoxFuture<'a, Option<WriteConcernError>> {
        Box::pin(self.replication.await_write_concern(ctx, wc))
    }

    fn reply_times(&self, ctx: &OpCtx) -> Option<ReplyTimes> {
        if !self.replication.member.is_initiated() {
            return None;
        }
        let log = self.storage.log();
        let operation_time = match ctx.last_op() {
            Some(t) => t.ts,
            None if ctx.read_concern.level() == ReadLevel::Majority => self.replication.committed(),
            None => self.replication.last_applied().ts,
        };
        let cluster_time = log.clock().max(operation_time);
        Some(ReplyTimes {
            cluster_time,
            signature: self.replication.sign_cluster_time(cluster_time),
            operation_time,
        })
    }

    fn append_metadata(&self, ctx: &OpCtx, reply: &mut DocBuilder) {
        if ctx.args.wants_repl_data || ctx.args.wants_oplog_query_data {
            self.replication.append_replication_metadata(ctx, reply);
        }
        if !ctx.client.is_internal() {
            return;
        }
        // What config servers know is newer than what they have heard of each other.
        match (&self.config_server, &self.sharding) {
            (Some(config_server), _) => config_server.append_times(reply),
            (None, Some(sharding)) => sharding.append_times(reply),
            (None, None) => {}
        }
    }

    fn topology_version(&self) -> Option<TopologyVersion> {
        self.replication.member.is_replicated().then(|| self.replication.member.topology_version())
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
