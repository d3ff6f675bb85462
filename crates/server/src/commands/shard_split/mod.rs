//! Commands of a set that splits (SV-CMD): begin it or join it, call it off, have it forgotten.

pub(in crate::commands) mod abort;
pub(in crate::commands) mod commit;
pub(in crate::commands) mod forget;

use super::prelude;
use super::prelude::*;
use super::tenant_operations::{TenantOperations, migration_id, when};
use pando_repl::services::Instance;
use pando_workflows::shard_split;

/// Returns when the split is decided: `None` where it has committed, or why it was aborted.
async fn decision(ctx: &OpCtx, instance: &Instance) -> Result<Option<Error>> {
    when(ctx, instance, |state| shard_split::decided(state).is_some()).await?;
    let none = || Error::internal("a shard split has ended without a decision");
    Ok(shard_split::decided(&instance.state()).ok_or_else(none)?.err())
}
