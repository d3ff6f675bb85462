//! `_recvChunkStart`, `_recvChunkStatus`, `_recvChunkCommit`, `_recvChunkReleaseCritSec`, `_recvChunkAbort`: what a donor asks of its
//! recipient.

use super::changelog::Changelog;
use super::give::migration_id;
use crate::commands::prelude::*;
use crate::commands::shardsvr::ddl::Ddl;
use pando_command::request::missing;
use pando_workflows::migration::{self, Migration};

/// Begins to receive; the same once more is no other.
///
/// # Errors
/// 117 while another range is received.
pub(in crate::commands) async fn start(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ddl = Ddl::new(server, ctx)?;
    let wanted = Migration::parse(req.body).ok_or_else(|| missing(req.name, "range"))?;
    if wanted.recipient != ddl.own_id().as_str() {
        let text = format!("shard {} is asked to receive what is for {}", ddl.own_id(), wanted.recipient);
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let host = ddl.host()?;
    let others = ddl.ctx.interruptible(host.all(migration::RECIPIENT)).await??;
    for other in others {
        let state = other.state();
        if Migration::parse(&state).is_some_and(|m| m.id != wanted.id) {
            let text = format!("Active migration already in progress: {state}");
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
    }
    let mut b = DocBuilder::new();
    b.uuid("_id", &wanted.id.0);
    for e in req.body.iter().filter(|e| {
        matches!(
            e.name(),
            "nss"
                | "collectionUuid"
                | "donorShardId"
                | "recipientShardId"
                | "range"
                | "keyPattern"
                | "request"
        )
    }) {
        b.elem(e);
    }
    let state = b.finish();
    // Before the first step, which looks for it.
    let is_first = ddl.sharding.receptions.begin(wanted.id);
    if is_first {
        ddl.sharding.statistics.recipient_started.inc();
    }
    let instance = ctx.interruptible(host.start(migration::RECIPIENT, &state)).await??;
    let (sharding, id) = (ddl.sharding.clone(), wanted.id);
    let changelog = Changelog::of(&ddl, wanted);
    ctx.env().spawn("migration recipient", async move {
        let ended = instance.result().await;
        if let Err(e) = &ended {
            sharding.receptions.failed(id, e.clone());
        }
        if is_first {
            changelog.ended("moveChunk.to", ended.as_ref().err()).await;
        }
    });
    Ok(Reply::new())
}

/// `{active, state, errmsg}`.
pub(in crate::commands) async fn status(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ddl = Ddl::new(server, ctx)?;
    let id = migration_id(&req)?;
    let instance = ddl.find(migration::RECIPIENT, id).await?;
    let mut r = Reply::new();
    r.body.bool("active", instance.is_some());
    match instance {
        Some(_) => {
            let (docs, bytes) = ddl.sharding.receptions.received(id);
            r.body.str("state", if ddl.sharding.receptions.is_steady(id) { "steady" } else { "clone" });
            r.body.doc("counts", |d| _ = d.i64("cloned", docs).i64("clonedBytes", bytes));
        }
        None => {
            r.body.str("state", "fail");
            if let Some(e) = ddl.sharding.receptions.failure(id) {
                r.body.str("errmsg", &e.message);
            }
        }
    }
    Ok(r)
}

/// Returns when a majority has everything.
pub(in crate::commands) async fn commit(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ddl = Ddl::new(server, ctx)?;
    let gone = || Error::new(ErrorCode::OperationFailed, "the recipient has given the migration up");
    let instance = ddl.find(migration::RECIPIENT, migration_id(&req)?).await?.ok_or_else(gone)?;
    instance.nudge();
    let entered = |state: &RawDoc| state.get("phase").and_then(|v| v.as_str()) == Some("entered");
    match ctx.interruptible(instance.when(entered)).await? {
        true => Ok(Reply::new()),
        false => Err(gone()),
    }
}

/// Returns when the migration is forgotten here.
pub(in crate::commands) async fn release(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ddl = Ddl::new(server, ctx)?;
    match ddl.find(migration::RECIPIENT, migration_id(&req)?).await? {
        Some(instance) => {
            instance.nudge();
            // Its failure tells that it is primary no more, or that the range stayed where it was.
            let ended = ctx.interruptible(instance.result()).await?;
            if let Err(e) = ended.as_ref()
                && e.code == ErrorCode::InterruptedDueToReplStateChange
            {
                return Err(e.clone());
            }
        }
        None => ddl.still_primary().await?,
    }
    Ok(Reply::new())
}

/// It is told at once what it would find out by asking.
pub(in crate::commands) async fn abort(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let ddl = Ddl::new(server, ctx)?;
    if let Some(instance) = ddl.find(migration::RECIPIENT, migration_id(&req)?).await? {
        instance.nudge();
    }
    Ok(Reply::new())
}
