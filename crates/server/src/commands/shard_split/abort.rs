//! `abortShardSplit {migrationId}`: calls a split off while that is possible (SV-CMD-2). One that nobody has begun will not begin.

use super::prelude::*;
use super::{TenantOperations, decision, migration_id};
use pando_workflows::shard_split;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let splits = TenantOperations::of(server, &req)?;
    let id = migration_id(&req)?;
    let instance = match splits.find(ctx, shard_split::SERVICE, &id).await? {
        Some(there) => there,
        None => {
            let nobodys = shard_split::begin(&id, &[], "", "", splits.set());
            splits.start(ctx, shard_split::SERVICE, &nobodys).await?
        }
    };
    instance.abort(Error::new(ErrorCode::TenantMigrationAborted, "abortShardSplit was called"));
    match decision(ctx, &instance).await? {
        Some(_) => Ok(Reply::new()),
        None => {
            let text = "failed to abort: the shard split has been committed already";
            Err(Error::new(ErrorCode::TenantMigrationCommitted, text))
        }
    }
}
