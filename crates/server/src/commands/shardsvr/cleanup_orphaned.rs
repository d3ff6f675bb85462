//! `cleanupOrphaned {<ns>}`: returns when ranges that had moved away by then are deleted here (SYS-234).

use super::ddl::Ddl;
use crate::commands::prelude::*;
use pando_base::limits;
use pando_storage::ReadAt;
use pando_workflows::migration::{self, Migration};
use std::time::Duration;

/// Those that move just now are not waited for. Tasks go when a majority has deleted everything.
///
/// # Errors
/// 50 when the time of the command is over: what is left is deleted all the same.
pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ns = Namespace::parse(req.first_str(req.name)?)?;
    let ddl = Ddl::new(server, ctx)?;
    let tasks = || -> Result<Vec<Migration>> {
        let all = ddl.server.access.internal_collections().all(&migration::deletions(), ReadAt::Latest)?;
        let ready = all.iter().filter(|task| !migration::is_pending(task));
        Ok(ready.filter_map(|task| Migration::parse(task)).filter(|m| m.ns == ns).collect())
    };
    let awaited: Vec<_> = tasks()?.into_iter().map(|m| m.id).collect();
    while tasks()?.iter().any(|m| awaited.contains(&m.id)) {
        let pause = Duration::from_millis(limits::MIGRATION_DELETIONS_LOOKED_AT_MS);
        ctx.interruptible(ctx.env().clock.sleep(pause)).await?;
    }
    Ok(Reply::new())
}
