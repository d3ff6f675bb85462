//! One command to one shard.

use super::shards::Shards;
use crate::op;
use pando_base::{Error, Result, limits};
use pando_bson::{RawDoc, Value};
use pando_command::OpCtx;
use pando_fleet::Answer;
use pando_monitor::ReadPreference;
use pando_routing::ShardId;
use pando_rpc::{CallResult, Failure, Kind, Retry, Sequence};
use std::time::Duration;

/// How long a call may take. Whoever waits for it gives up when the client's limit is over, in the client's terms; the call itself
/// outlasts that, or what is told would be that a host did not answer.
fn time_left(ctx: &OpCtx) -> Duration {
    match ctx.deadline() {
        Some(at) => {
            let left = at.saturating_sub(ctx.env().clock.mono());
            left + Duration::from_millis(limits::ROUTER_CALL_GRACE_MS)
        }
        None => Duration::from_millis(limits::ROUTER_CALL_MS),
    }
}

/// Who may answer the client's command.
pub(crate) fn read_preference(body: &RawDoc) -> Result<ReadPreference> {
    match body.get("$readPreference") {
        Some(Value::Document(doc)) => ReadPreference::parse(doc),
        _ => Ok(ReadPreference::default()),
    }
}

impl Shards {
    /// Calls a member of a shard that `preference` admits, for an operation that may be interrupted.
    pub(crate) async fn call(
        &self,
        ctx: &OpCtx,
        shard: &ShardId,
        preference: &ReadPreference,
        body: &RawDoc,
        sequences: &[Sequence<'_>],
        retry: Retry,
    ) -> CallResult<Answer> {
        let not_sent = |e: Error| Failure::new(Kind::NotSent, e);
        let set = self.catalog.set_of(shard).await.map_err(not_sent)?;
        let calling = self.fleet.call(&set, preference, body, sequences, retry, time_left(ctx));
        let done = ctx.interruptible(calling).await.map_err(not_sent)?;
        match &done {
            Ok(answer) => op::hear(ctx, Some(shard), &answer.reply),
            Err(failure) => failure.reply.iter().for_each(|reply| op::hear(ctx, Some(shard), reply)),
        }
        done
    }
    /// The same on the shard's primary.
    pub(crate) async fn call_primary(
        &self,
        ctx: &OpCtx,
        shard: &ShardId,
        body: &RawDoc,
        retry: Retry,
    ) -> CallResult<Answer> {
        self.call(ctx, shard, &ReadPreference::default(), body, &[], retry).await
    }
    /// A host that has given a cursor. An idle connection does: where it is dead since the host went away, so is the cursor.
    pub(crate) async fn call_host(&self, ctx: &OpCtx, host: &str, body: &RawDoc) -> CallResult<Answer> {
        let calling = async {
            let limit = time_left(ctx);
            let mut lease = self.fleet.pool.take(host, limit).await?;
            lease.call(body, limit).await.map(RawDoc::to_buf)
        };
        let done = ctx.interruptible(calling).await.map_err(|e| Failure::new(Kind::NotSent, e))?;
        if let Ok(reply) = &done {
            op::hear(ctx, None, reply);
        }
        done.map(|reply| Answer { host: host.to_owned(), reply })
    }
    /// The config servers' primary, for an operation.
    pub(crate) async fn call_config(&self, ctx: &OpCtx, body: &RawDoc, retry: Retry) -> CallResult<Answer> {
        self.call_primary(ctx, &ShardId::config(), body, retry).await
    }
}
