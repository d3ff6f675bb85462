//! `_shardsvrDropDatabase`: a router's `dropDatabase`, for the primary shard; and what other shards do for it.

use crate::commands::prelude::*;
use crate::commands::shardsvr::create_collection::number_of;
use crate::commands::shardsvr::ddl::Ddl;
use pando_workflows::drop_sharded_database;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    check_may_go(req.db)?;
    server.upkeep.admission.before_write(ctx).await?;
    let ddl = Ddl::new(server, ctx)?;
    ddl.coordinate(req.db, drop_sharded_database::OPERATION, RawDoc::empty()).await?;
    let mut r = Reply::new();
    r.body.str("dropped", req.db);
    Ok(r)
}

pub(in crate::commands) async fn participant(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    check_may_go(req.db)?;
    server.upkeep.admission.before_write(ctx).await?;
    Ddl::new(server, ctx)?.drop_database_part(req.db, number_of(&req)?).await?;
    Ok(Reply::new())
}

/// What a shard keeps of itself and of its cluster is nobody's to drop, whoever asks.
pub(super) fn check_may_go(db: &str) -> Result<()> {
    match db {
        "admin" | "config" | "local" => {
            Err(Error::new(ErrorCode::IllegalOperation, format!("Cannot drop the {db} database")))
        }
        _ => Ok(()),
    }
}
