//! What lies on config servers that own nothing any more, when they cease to be a shard.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;

/// Behind each database.
const HANG: &str = "hangAfterDroppingDatabaseInTransitionToDedicatedConfigServer";

/// Databases of users; the others are each set's own.
pub(in crate::commands) fn is_of_users(db: &str) -> bool {
    !matches!(db, "admin" | "config" | "local")
}

/// Drops the users' collections, each as a part that belongs elsewhere: to whoever watches the cluster nothing happens. Also what was kept of
/// who owns them. Returns when a majority has it; what is gone already is no mistake.
pub(in crate::commands) async fn drop_leftovers(server: &Server, ctx: &OpCtx) -> Result<()> {
    let ddl = Ddl::new(server, ctx)?;
    let definitions = server.access.definitions();
    for db in definitions.databases().iter().filter(|db| is_of_users(db)) {
        for coll in definitions.collections(db) {
            ddl.drop_unowned(&coll.ns).await?;
        }
        ctx.interruptible(server.lifecycle.hold(HANG)).await?;
    }
    let internal = server.access.internal_collections();
    for coll in definitions.collections("config").iter().filter(|c| c.ns.coll().starts_with("cache.")) {
        internal.drop(&coll.ns).await?;
    }
    ddl.sharding.forget_all();
    ctx.wrote(server.replication.last_applied());
    ddl.committed().await
}
