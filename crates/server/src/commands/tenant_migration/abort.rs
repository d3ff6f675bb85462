//! `donorAbortMigration {migrationId}`: calls a migration off while that is possible.

use super::prelude::*;
use super::{TenantOperations, migration_id, not_known, when};
use pando_workflows::donate_tenants;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let migrations = TenantOperations::of(server, &req)?;
    let id = migration_id(&req)?;
    let instance = migrations.donation(ctx, &id).await?.ok_or_else(|| not_known(&id))?;
    instance.abort(Error::new(ErrorCode::TenantMigrationAborted, "Aborted due to donorAbortMigration"));
    when(ctx, &instance, |state| donate_tenants::decided(state).is_some()).await?;
    match donate_tenants::decided(&instance.state()) {
        Some(Err(_)) => Ok(Reply::new()),
        _ => {
            let text = "Tenant migration already committed";
            Err(Error::new(ErrorCode::TenantMigrationCommitted, text))
        }
    }
}
