//! `donorForgetMigration {migrationId}`: whoever began a migration has done what follows from it. It answers when the recipient has heard so.

use super::prelude::*;
use super::{TenantOperations, migration_id, not_known, when};
use pando_workflows::donate_tenants;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let migrations = TenantOperations::of(server, &req)?;
    let id = migration_id(&req)?;
    let instance = migrations.donation(ctx, &id).await?.ok_or_else(|| not_known(&id))?;
    if donate_tenants::decided(&instance.state()).is_none() {
        let text = format!("Could not forget migration with id {id} since no decision has been made yet");
        return Err(Error::new(ErrorCode::TenantMigrationInProgress, text));
    }
    if !donate_tenants::is_forgotten(&instance.state()) {
        instance.nudge();
    }
    when(ctx, &instance, donate_tenants::is_forgotten).await?;
    Ok(Reply::new())
}
