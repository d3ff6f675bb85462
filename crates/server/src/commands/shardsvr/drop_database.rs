//! `_shardsvrDropDatabase`: a router's `dropDatabase`, for the primary shard; and what other shards do for it.

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.upkeep.admission.before_write(ctx).await?;
    Ddl::new(server, ctx)?.drop_database(req.db).await?;
    let mut r = Reply::new();
    r.body.str("dropped", req.db);
    Ok(r)
}

pub(in crate::commands) async fn participant(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    server.upkeep.admission.before_write(ctx).await?;
    Ddl::new(server, ctx)?.drop_database_as_told(req.db).await?;
    Ok(Reply::new())
}
