//! The router as the pipeline of commands sees it: everything may run here, and what a reply says of time is what shards said.

use crate::Router;
use crate::op::{self, OpState};
use crate::transactions::read_concern_of;
use pando_auth::{Action, Authority};
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_bson::DocBuilder;
use pando_command::cluster_time::Signature;
use pando_command::{
    Client, Flags, GenericArgs, Instance, Node, OpCtx, Param, ReadLevel, ReplyTimes, Request, Roles,
    TopologyVersion, WriteConcern, WriteConcernError,
};
use pando_env::BoxFuture;
use pando_env::Component;
use std::sync::Arc;

impl Node for Router {
    fn roles(&self) -> Roles {
        Roles::ROUTER
    }
    fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }
    fn look_up<'a>(&'a self, client: &'a Client, args: &'a GenericArgs) -> Option<BoxFuture<'a, ()>> {
        let now = self.instance.env.clock.mono();
        let lacks_key = args.cluster_time.as_ref().is_some_and(|(time, by)| {
            *time > self.times.cluster().0 && self.time_keys.should_ask(*time, by, now)
        });
        let is_settled = self.principals.is_settled(client);
        if is_settled && !lacks_key {
            return None;
        }
        Some(Box::pin(async move {
            if lacks_key {
                // The time is refused then.
                let _ = self.read_time_keys().await;
            }
            if let Err(e) = self.principals.authority(client).await {
                client.env.log.info(
                    Component::Access,
                    9_100_095,
                    "It is not known what a client may do",
                    |a| {
                        a.data("error", &e);
                    },
                );
            }
        }))
    }
    fn authority(&self, client: &Client) -> Result<Arc<Authority>> {
        Ok(self.principals.settled(client))
    }
    fn admit(&self, ctx: &OpCtx, _flags: Flags) -> Result<()> {
        if let Some(lsid) = &ctx.lsid {
            let max = self.instance.params.int(Param::maxSessions) as usize;
            self.sessions.touch(lsid, ctx.started, max)?;
        }
        ctx.attach(Arc::new(OpState::at(self.times.cluster().0, self.concern_defaults.get())));
        Ok(())
    }
    /// Shards believe what this router says: a client has to have it from one of the cluster.
    fn advance_cluster_time(&self, client: &Client, seen: Timestamp, signature: &Signature) -> Result<()> {
        let now = (self.instance.env.clock.wall_ms() / 1000).max(0) as u32;
        if seen.secs().saturating_sub(now) > limits::CLUSTER_TIME_AHEAD_SECS {
            let text =
                format!("New cluster time, {seen}, is too far from this node's wall clock time, {now}.");
            return Err(Error::new(ErrorCode::ClusterTimeFailsRateLimiter, text));
        }
        if self.instance.asks_for_logins()
            && seen > self.times.cluster().0
            && !self.principals.settled(client).may_on_cluster(Action::AdvanceClusterTime)
        {
            self.time_keys.check(seen, signature)?;
        }
        self.times.advance_cluster(seen, *signature);
        Ok(())
    }
    fn check_out<'a>(&'a self, ctx: &'a OpCtx, req: &'a Request<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (Some(lsid), Some(number)) = (ctx.lsid, ctx.txn_number) else { return Ok(()) };
            let now = ctx.started;
            let found = match ctx.start_transaction {
                true => {
                    let given = req.body.get("readConcern").and_then(|v| v.as_doc());
                    let default = self.concern_defaults.get().of_transaction();
                    let given = given.filter(|d| !d.is_empty()).or(default.as_deref());
                    let reads = read_concern_of(given, self.times.cluster().0);
                    self.transactions.begin(lsid, number, reads, now)
                }
                false => self.transactions.go_on(&lsid, number, now),
            };
            match found {
                Ok(transaction) => {
                    if let Some(state) = ctx.attached::<OpState>() {
                        state.set_transaction(transaction);
                    }
                    Ok(())
                }
                // Another router may have begun what is committed here; what is wrong with the command is told first.
                Err(_) if pando_command::ends_transaction(ctx.command) => Ok(()),
                Err(e) => Err(e),
            }
        })
    }
    /// Where another router can learn what became of it.
    fn append_of_transaction(&self, ctx: &OpCtx, reply: &mut DocBuilder) {
        let Some(transaction) = op::transaction(ctx) else { return };
        reply.doc("recoveryToken", |token| {
            if let Some(shard) = transaction.recovery_shard() {
                token.str("recoveryShardId", shard.as_str());
            }
        });
    }
    /// A statement that failed ends its transaction.
    fn check_in(&self, ctx: &OpCtx, failed: Option<&Error>) {
        let (Some(lsid), Some(transaction)) = (ctx.lsid, op::transaction(ctx)) else { return };
        if failed.is_some() && !pando_command::ends_transaction(ctx.command) {
            self.abort_in_background(lsid, transaction.number, transaction.abort());
        }
    }
    fn default_write_concern(&self) -> WriteConcern {
        self.concern_defaults.get().write_concern()
    }
    fn default_read_level(&self) -> Option<ReadLevel> {
        self.concern_defaults.get().read
    }
    /// Shards have waited.
    fn await_write_concern<'a>(
        &'a self,
        _: &'a OpCtx,
        _: &'a WriteConcern,
    ) -> BoxFuture<'a, Option<WriteConcernError>> {
        Box::pin(async { None })
    }
    fn reply_times(&self, ctx: &OpCtx) -> Option<ReplyTimes> {
        let (cluster_time, heard) = self.times.cluster();
        if cluster_time.is_zero() {
            return None;
        }
        let signs = self.instance.asks_for_logins();
        let signature = if signs { self.time_keys.sign(cluster_time) } else { heard };
        let heard = ctx.attached::<OpState>().map_or(Timestamp::ZERO, OpState::operation);
        let operation_time = if heard.is_zero() { cluster_time } else { heard };
        Some(ReplyTimes { cluster_time, signature, operation_time })
    }
    fn topology_version(&self) -> Option<TopologyVersion> {
        Some(TopologyVersion { process_id: self.process_id, counter: 0 })
    }
}
