//! `startSession`, `refreshSessions`, `endSessions`, `killSessions`, `killAllSessions`,
//! `killAllSessionsByPattern`: the life of logical sessions.

use super::prelude::*;
use pando_command::SessionId;
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
    server.sessions.cache.touch(&SessionId::of(id), ctx.started, max)?;
    let mut r = Reply::new();
    r.body.doc("id", |d| {
        d.uuid("id", &id);
    });
    r.body.i32("timeoutMinutes", pando_base::limits::SESSION_TIMEOUT_MINUTES as i32);
    Ok(r)
}

/// The sessions that a list names.
fn named(req: &Request<'_>, list: &Listed) -> Result<Vec<SessionId>> {
    Ok(list.read(req)?.into_iter().filter_map(lsid_of).collect())
}

pub(super) async fn refresh(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let max = server.instance.params.int(pando_command::Param::maxSessions) as usize;
    RefreshSessionsArgs::parse(&req)?;
    let listed = named(&req, &REFRESH)?;
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
    let listed = named(&req, &END)?;
    ctx.arguments_read()?;
    for lsid in listed {
        server.sessions.cache.end(&lsid);
    }
    Ok(Reply::new())
}

pub(super) async fn kill(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let which = named(&req, &KILL)?;
    if which.is_empty() {
        // An empty list means all sessions of the caller.
        kill_where(server, ctx, |_| true);
    } else {
        kill_where(server, ctx, |lsid| which.iter().any(|w| w == lsid));
    }
    Ok(Reply::new())
}

pub(super) async fn kill_all(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let users = KILL_ALL.read(&req)?;
    // Without authentication there are no users, and all sessions belong to nobody in particular.
    if let Some(user) = users.first() {
        let text = |name: &str| user.get(name).and_then(|v| v.as_str()).unwrap_or_default();
        let text = format!("Could not find user \"{}\" for db \"{}\"", text("user"), text("db"));
        return Err(Error::new(ErrorCode::UserNotFound, text));
    }
    kill_where(server, ctx, |_| true);
    Ok(Reply::new())
}

pub(super) async fn kill_by_pattern(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let patterns = KILL_BY_PATTERN.read(&req)?;
    let wanted: Vec<Option<SessionId>> =
        patterns.iter().map(|p| p.get("lsid").and_then(|v| lsid_of(v.as_doc()?))).collect();
    let all = wanted.is_empty() || wanted.iter().any(Option::is_none);
    kill_where(server, ctx, |lsid| all || wanted.iter().flatten().any(|w| w == lsid));
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
