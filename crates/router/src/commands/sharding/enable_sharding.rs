//! `enableSharding`: a database, with a primary shard if one is named.

use super::super::prelude::*;

pub(in crate::commands) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let name = req.first_str("enableSharding")?;
    let primary = ["primaryShard", "primaryShardId"].iter().find_map(|f| req.body.get(*f));
    let primary = primary.as_ref().and_then(|v| v.as_str());
    router.create_database(ctx, name, primary).await?;
    Ok(Reply::new())
}
