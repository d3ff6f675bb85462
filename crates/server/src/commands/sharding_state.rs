//! `getShardMap`, `flushRouterConfig` on a node that belongs to no sharded cluster.

use super::prelude::*;

/// What needs a cluster's metadata has none.
pub(super) async fn not_enabled(_: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    Err(Error::new(ErrorCode::ShardingStateNotInitialized, "Sharding is not enabled"))
}
