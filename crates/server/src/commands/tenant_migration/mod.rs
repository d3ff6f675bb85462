//! Commands of tenants that move from one set to another (SV-OUT-1, SV-OUT-2), on both sides.
//!
//! ```text
//!   whoever wants it:  donorStartMigration … donorStartMigration ─► {state: "committed"} ─► donorForgetMigration
//!                      donorAbortMigration
//!   donor's machine ─► recipientSyncData … recipientSyncData ─► _recipientCommitMigration ─► recipientForgetMigration
//! ```
//! All of them may be sent again, to whoever is primary by then.

pub(in crate::commands) mod abort;
pub(in crate::commands) mod copy_test;
pub(in crate::commands) mod donor;
pub(in crate::commands) mod forget;
pub(in crate::commands) mod recipient_commit;
pub(in crate::commands) mod recipient_forget;
pub(in crate::commands) mod start;
pub(in crate::commands) mod sync_data;

use super::prelude;
use super::prelude::*;
use super::tenant_operations::{TenantOperations, migration_id, tenants_of, when};
use pando_base::Uuid;
use pando_repl::services::Instance;
use pando_workflows::{donate_tenants, receive_tenants};
use std::sync::Arc;
use std::time::Duration;

impl TenantOperations<'_> {
    async fn donation(&self, ctx: &OpCtx, id: &Uuid) -> Result<Option<Arc<Instance>>> {
        self.find(ctx, donate_tenants::SERVICE, id).await
    }
    async fn reception(&self, ctx: &OpCtx, id: &Uuid) -> Result<Option<Arc<Instance>>> {
        self.find(ctx, receive_tenants::SERVICE, id).await
    }
}

/// Waits as [`when`] does, and ends without an error where it takes long: whoever asked asks again.
async fn when_soon(
    ctx: &OpCtx,
    instance: &Instance,
    looks_so: impl Fn(&RawDoc) -> bool + Send + Sync,
) -> Result<bool> {
    let limit = Duration::from_millis(pando_base::limits::TENANT_MIGRATION_ANSWER_MS);
    match ctx.env().timeout(limit, when(ctx, instance, &looks_so)).await {
        Some(done) => done.map(|()| looks_so(&instance.state())),
        None => Ok(false),
    }
}

/// Nothing is known here of a migration that the donor has committed: it is over, and its document has gone. Whoever does not know yet that another
/// one is primary could say so of one that it has not heard of, so a majority is asked.
async fn check_is_over(server: &Server, ctx: &OpCtx) -> Result<()> {
    let at = server.replication.write_noop("a tenant migration is over")?;
    ctx.interruptible(server.replication.await_majority(at)).await??;
    Ok(())
}

fn not_known(id: &Uuid) -> Error {
    let text = format!("Could not find tenant migration with id {id}");
    Error::new(ErrorCode::NoSuchTenantMigration, text)
}
