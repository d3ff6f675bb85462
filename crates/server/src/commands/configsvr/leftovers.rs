//! What lies on config servers that own nothing any more, when they cease to be a shard.

use super::prelude::*;

/// Behind each database.
const HANG: &str = "hangAfterDroppingDatabaseInTransitionToDedicatedConfigServer";

/// Databases of users; the others are each set's own.
pub(super) fn is_of_users(db: &str) -> bool {
    !matches!(db, "admin" | "config" | "local")
}

/// Drops the users' collections, each as a part that belongs elsewhere: to whoever watches the cluster nothing happens. Also what was kept of
/// who owns them. Returns when a majority has it; what is gone already is no mistake.
pub(super) async fn drop_leftovers(server: &Server, ctx: &OpCtx) -> Result<()> {
    let definitions = server.access.definitions();
    for db in definitions.databases().iter().filter(|db| is_of_users(db)) {
        for coll in definitions.collections(db) {
            drop_part(server, ctx, &coll.ns).await?;
        }
        ctx.interruptible(server.lifecycle.hold(HANG)).await?;
    }
    let internal = server.access.internal_collections();
    for coll in definitions.collections("config").iter().filter(|c| c.ns.coll().starts_with("cache.")) {
        internal.drop(&coll.ns).await?;
    }
    server.sharding.iter().for_each(|sharding| sharding.forget_all());
    let upto = server.replication.last_applied();
    ctx.wrote(upto);
    ctx.interruptible(server.replication.await_majority(upto)).await?
}

async fn drop_part(server: &Server, ctx: &OpCtx, ns: &Namespace) -> Result<()> {
    match server.access.drop_part(ctx, ns).await {
        Ok(dropped) => ctx.wrote(dropped.last),
        Err(e) if e.code == ErrorCode::NamespaceNotFound => {}
        Err(e) => return Err(e),
    }
    server.statistics.top.forget(ns.as_str());
    Ok(())
}
