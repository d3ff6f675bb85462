//! `startSession`, `refreshSessions`, `endSessions`, `killSessions`, `killAllSessions`,
//! `killAllSessionsByPattern`: the life of logical sessions.

use super::prelude::*;
use pando_auth::Action;
use pando_base::session_id::NO_USER_DIGEST;
use pando_command::SessionId;
use pando_logins::sessions;
use pando_oplog::session::lsid_of;
use pando_request::session::sessions::{END, KILL, KILL_ALL, KILL_BY_PATTERN, Listed, REFRESH};
use pando_request::{EndSessionsArgs, RefreshSessionsArgs};

pub(super) async fn start(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut id = [0; 16];
    server.instance.env.rng.fill(&mut id);
    // Version 4, variant 1.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    let max = server.instance.params.int(pando_command::Param::maxSessions) as usize;
    let lsid = SessionId::of_user(id, ctx.owner().unwrap_or(NO_USER_DIGEST));
    server.sessions.cache.touch(&lsid, ctx.started, max)?;
    let mut r = Reply::new();
    r.body.doc("id", |d| {
        d.uuid("id", &id);
    });
    r.body.i32("timeoutMinutes", pando_base::limits::SESSION_TIMEOUT_MINUTES as i32);
    Ok(r)
}

async fn named(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    list: &Listed,
    instead: Action,
) -> Result<Vec<SessionId>> {
    let listed = list.read(req)?.into_iter().filter_map(lsid_of).collect();
    sessions::named(server, ctx, listed, instead).await
}

pub(super) async fn refresh(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let max = server.instance.params.int(pando_command::Param::maxSessions) as usize;
    RefreshSessionsArgs::parse(&req)?;
    let listed = named(server, ctx, &req, &REFRESH, Action::Impersonate).await?;
    ctx.arguments_read()?;
    for lsid in listed {
        server.sessions.cache.touch(&lsid, ctx.started, max)?;
    }
    Ok(Reply::new())
}

pub(super) async fn refresh_now(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.sessions.refresh().await?;
    Ok(Reply::new())
}

/// Ended sessions lose their cursors at the next sweep, as in MongoDB; a client may still be draining one.
pub(super) async fn end(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    EndSessionsArgs::parse(&req)?;
    let listed = named(server, ctx, &req, &END, Action::Impersonate).await?;
    ctx.arguments_read()?;
    for lsid in listed {
        server.sessions.cache.end(&lsid);
    }
    Ok(Reply::new())
}

pub(super) async fn kill(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let which = named(server, ctx, &req, &KILL, Action::KillAnySession).await?;
    if which.is_empty() {
        // An empty list means all sessions of the caller.
        let own = ctx.owner();
        kill_where(server, ctx, |lsid| own.is_none_or(|own| lsid.uid == own));
    } else {
        kill_where(server, ctx, |lsid| which.iter().any(|w| w == lsid));
    }
    Ok(Reply::new())
}

pub(super) async fn kill_all(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let digests = sessions::digests_of_users(server, &KILL_ALL.read(&req)?).await?;
    kill_where(server, ctx, |lsid| digests.is_empty() || digests.contains(&lsid.uid));
    Ok(Reply::new())
}

pub(super) async fn kill_by_pattern(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let patterns = KILL_BY_PATTERN.read(&req)?;
    kill_where(server, ctx, |lsid| {
        patterns.is_empty() || patterns.iter().any(|pattern| sessions::fits(pattern, lsid, ctx.owner()))
    });
    Ok(Reply::new())
}

/// Interrupts the operations of the sessions and drops their cursors.
fn kill_where(server: &Server, ctx: &OpCtx, which: impl Fn(&SessionId) -> bool) {
    let me = ctx.op_id;
    server
        .instance
        .clients
        .kill_where(ErrorCode::Interrupted, |_, op| op.op_id != me && op.lsid.as_ref().is_some_and(&which));
    for open in crate::transaction::parked(&server.sessions.retryable) {
        if which(&open.lsid) {
            server.sessions.abort_session(&open.lsid, ErrorCode::Interrupted);
        }
    }
    let now = ctx.env().clock.mono();
    server.crud.cursors.open.kill_where(now, |c| c.lsid.as_ref().is_some_and(&which));
}
