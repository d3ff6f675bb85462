//! `forgetShardSplit {migrationId}`: whoever began a split has done what follows from it (SV-CMD-3, SV-GC-1).

use super::prelude::*;
use super::{TenantOperations, migration_id, when};
use pando_workflows::shard_split;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let splits = TenantOperations::of(server, &req)?;
    let id = migration_id(&req)?;
    let Some(instance) = splits.find(ctx, shard_split::SERVICE, &id).await? else {
        let text = format!("shard split {id} is not known");
        return Err(Error::new(ErrorCode::NoSuchTenantMigration, text));
    };
    if shard_split::decided(&instance.state()).is_none() {
        let text = format!("shard split {id} has not been decided yet");
        return Err(Error::new(ErrorCode::TenantMigrationInProgress, text));
    }
    if !shard_split::is_forgotten(&instance.state()) {
        instance.nudge();
    }
    // On a majority: only then it is known here.
    when(ctx, &instance, shard_split::is_forgotten).await?;
    Ok(Reply::new())
}
