//! `_shardsvrDropCollection`: a router's `drop`, for the primary shard of the database; and what other shards do for it.

use crate::commands::prelude::*;
use crate::commands::shardsvr::create_collection::number_of;
use crate::commands::shardsvr::ddl::Ddl;
use pando_base::{Namespace, Uuid};
use pando_workflows::drop_collection;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = req.ns()?;
    check_may_go(&ns)?;
    if let Some(Value::Binary { subtype: 4, bytes }) = req.body.get("collectionUUID")
        && let Some(uuid) = Uuid::from_slice(bytes)
    {
        server.access.check_uuid(&ns, uuid)?;
    }
    server.upkeep.admission.before_write(ctx).await?;
    Ddl::new(server, ctx)?.coordinate(ns.as_str(), drop_collection::OPERATION, RawDoc::empty()).await?;
    Ok(Reply::new())
}

pub(in crate::commands) async fn participant(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let ns = req.ns()?;
    check_may_go(&ns)?;
    server.upkeep.admission.before_write(ctx).await?;
    Ddl::new(server, ctx)?.drop_part(&ns, number_of(&req)?).await?;
    Ok(Reply::new())
}

/// What a shard keeps of itself and of its cluster is nobody's to drop, whoever asks; sessions lie on all shards.
fn check_may_go(ns: &Namespace) -> Result<()> {
    let is_own = matches!(ns.db(), "admin" | "config" | "local") && ns.as_str() != "config.system.sessions";
    if is_own {
        return Err(Error::new(ErrorCode::IllegalOperation, format!("Cannot drop {ns}")));
    }
    Ok(())
}
