//! `_addShard`: the config servers make this set a shard of their cluster (SYS-201).

use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use crate::sharding::sections;
use pando_access::Uninterrupted;
use pando_command::request::missing;
use pando_shard::ShardIdentity;
use pando_workflows::rename_collection;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let identity = req.body.get("shardIdentity");
    let identity =
        identity.as_ref().and_then(|v| v.as_doc()).ok_or_else(|| missing("_addShard", "shardIdentity"))?;
    let identity = ShardIdentity::parse(identity)?;
    identity.check_name(false)?;
    let versions = Namespace::unchecked("admin", "system.version");
    let internal = server.access.internal_collections();
    server.upkeep.admission.before_write(ctx).await?;
    // It may have been a shard before, and gone while something was renamed.
    sections::leave_those_of(&internal, &[rename_collection::SECTION]).await?;
    ctx.wrote(internal.put(&Uninterrupted, &versions, &identity.to_doc()).await?);
    Ddl::new(server, ctx)?.committed().await?;
    Ok(Reply::new())
}
