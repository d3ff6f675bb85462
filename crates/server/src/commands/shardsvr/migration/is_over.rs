//! `_shardsvrMigrationIsOver {<ns>, migrationId}` ─► `{over}`: whether the config servers will hear of the migration no more.

use super::give::migration_id;
use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use pando_workflows::migration;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ddl = Ddl::new(server, ctx)?;
    let id = migration_id(&req)?;
    let over = match ddl.find(migration::DONOR, id).await? {
        Some(instance) => {
            let state = instance.state();
            matches!(state.get("phase").and_then(|v| v.as_str()), Some("committed" | "aborted"))
        }
        None => {
            ddl.still_primary().await?;
            true
        }
    };
    let mut r = Reply::new();
    r.body.bool("over", over);
    Ok(r)
}
