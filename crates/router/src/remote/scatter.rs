//! One command to several shards at the same time.

use super::shards::Shards;
use pando_bson::DocBuf;
use pando_command::OpCtx;
use pando_env::together;
use pando_fleet::Answer;
use pando_metadata_cache::Target;
use pando_monitor::ReadPreference;
use pando_routing::ShardId;
use pando_rpc::{CallResult, Retry};

/// What a shard said.
pub(crate) struct Said {
    pub(crate) shard: ShardId,
    pub(crate) result: CallResult<Answer>,
}

impl Shards {
    /// What each of the targets says, in their order. `body` makes the command for one of them.
    pub(crate) async fn scatter(
        &self,
        ctx: &OpCtx,
        targets: &[Target],
        preference: &ReadPreference,
        retry: Retry,
        body: impl Fn(&Target) -> DocBuf,
    ) -> Vec<Said> {
        // A statement of a transaction is not said twice.
        let retry = if ctx.in_txn() { Retry::Never } else { retry };
        let calls = targets.iter().map(|target| {
            let body = body(target);
            async move {
                let result = self.call(ctx, &target.shard, preference, &body, &[], retry).await;
                Said { shard: target.shard.clone(), result }
            }
        });
        together(calls.collect()).await
    }
    /// The replies of all, or the first error.
    pub(crate) async fn gather(
        &self,
        ctx: &OpCtx,
        targets: &[Target],
        preference: &ReadPreference,
        retry: Retry,
        body: impl Fn(&Target) -> DocBuf,
    ) -> pando_base::Result<Vec<(ShardId, DocBuf)>> {
        let said = self.scatter(ctx, targets, preference, retry, body).await;
        said.into_iter().map(|s| Ok((s.shard, s.result?.reply))).collect()
    }
}
