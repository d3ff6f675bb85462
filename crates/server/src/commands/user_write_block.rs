//! `setUserWriteBlockMode` of a set that is no part of a cluster: blocks the writes of users, or lets them in again.

use super::prelude::*;
use crate::settings::user_writes::Blocked;
use pando_request::SetUserWriteBlockModeArgs;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let writes = SetUserWriteBlockModeArgs::parse(&req)?.global;
    ctx.arguments_read()?;
    if server.config.cluster_role.is_some() {
        let text = "setUserWriteBlockMode cannot be run on shardsvrs nor configsvrs";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    if !server.replication.member.is_replicated() {
        let text = "setUserWriteBlockMode cannot be run on standalones";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    server.upkeep.admission.before_write(ctx).await?;
    let wrote = server.settings.block_user_writes(Blocked { definitions: false, writes }).await?;
    wrote.into_iter().for_each(|at| ctx.wrote(at));
    if writes {
        await_users(server, ctx).await?;
    }
    Ok(Reply::new())
}

/// Of writes that have just been blocked: returns when everybody is out who was let in before, transactions included. Index builds that are under
/// way are given up (276), since they might go on for long.
pub(super) async fn await_users(server: &Server, ctx: &OpCtx) -> Result<()> {
    let maintenance = &server.upkeep.maintenance;
    let all = server.access.definitions().databases();
    for db in all.iter().filter(|db| !matches!(db.as_str(), "admin" | "config" | "local")) {
        let names = ctx.interruptible(async {
            let _locked = maintenance.lock_database(db).await;
            let names = maintenance.names_in_database(db);
            for ns in &names {
                maintenance.abort_builds(ns, "the writes of users are blocked").await?;
            }
            Ok::<_, Error>(names)
        });
        for ns in names.await?? {
            ctx.interruptible(maintenance.await_writers(&ns)).await?;
        }
    }
    // Who waits may have written nothing, and others may have.
    ctx.wrote(server.replication.last_applied());
    Ok(())
}
