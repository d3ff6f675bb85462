//! `enableSharding`: a database, with a primary shard if one is named.

use super::super::prelude::*;
use pando_audit::Event;
use pando_request::EnableShardingArgs;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let name = req.first_str("enableSharding")?;
    let args = EnableShardingArgs::parse(&req)?;
    router.create_database(ctx, name, args.primary.or(args.primary_id)).await?;
    ctx.client.audit(|| Event::enable_sharding(name));
    Ok(Reply::new())
}
