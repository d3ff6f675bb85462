//! `_flushRoutingTableCacheUpdates` and `_flushDatabaseCacheUpdates`: what this shard knows is read anew.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;

pub(in crate::commands) async fn collection(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str(req.name)?)?;
    Ddl::new(server, ctx)?.sharding.refresh_anew(&ns).await?;
    Ok(Reply::new())
}

pub(in crate::commands) async fn database(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let db = req.first_str(req.name)?;
    Ddl::new(server, ctx)?.sharding.refresh_database_anew(db).await?;
    Ok(Reply::new())
}
