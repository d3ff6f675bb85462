//! `fsync`, `fsyncUnlock`: everything to disk now; with `lock`, no writes until unlocked.

use super::prelude::*;

pub(super) async fn lock(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let lock = req.body.get("lock").is_some_and(|v| v.is_truthy());
    let mut r = Reply::new();
    if lock {
        let count = server.upkeep.admission.fsync_lock.lock();
        if count == 1
            && let Err(e) = server.upkeep.checkpoints.take_now(ctx).await
        {
            server.upkeep.admission.fsync_lock.unlock();
            return Err(e);
        }
        r.body.str("info", "now locked against writes, use db.fsyncUnlock() to unlock");
        r.body.i64("lockCount", count);
        r.body.str("seeAlso", "http://dochub.mongodb.org/core/fsynccommand");
    } else {
        server.upkeep.checkpoints.take_now(ctx).await?;
        r.body.i32("numFiles", 1);
    }
    Ok(r)
}

pub(super) async fn unlock(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let Some(count) = server.upkeep.admission.fsync_lock.unlock() else {
        return Err(Error::uncoded("fsyncUnlock called when not locked"));
    };
    let mut r = Reply::new();
    r.body.str("info", "fsyncUnlock completed");
    r.body.i64("lockCount", count);
    Ok(r)
}
