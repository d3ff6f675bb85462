//! `startSession`, `refreshSessions`, `endSessions`, `killSessions`, `killAllSessions`,
//! `killAllSessionsByPattern`: the life of logical sessions.

use super::prelude::*;
use pando_auth::{Action, UserName};
use pando_base::session_id::NO_USER_DIGEST;
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
    let lsid = SessionId::of_user(id, ctx.owner().unwrap_or(NO_USER_DIGEST));
    server.sessions.cache.touch(&lsid, ctx.started, max)?;
    let mut r = Reply::new();
    r.body.doc("id", |d| {
        d.uuid("id", &id);
    });
    r.body.i32("timeoutMinutes", pando_base::limits::SESSION_TIMEOUT_MINUTES as i32);
    Ok(r)
}

/// The sessions that a list names: the caller's own, unless it says whose, which it has to be allowed to (`instead`).
fn named(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    list: &Listed,
    instead: Action,
) -> Result<Vec<SessionId>> {
    let mut listed: Vec<SessionId> = list.read(req)?.into_iter().filter_map(lsid_of).collect();
    let Some(own) = ctx.owner() else { return Ok(listed) };
    for lsid in &mut listed {
        if lsid.uid == NO_USER_DIGEST {
            lsid.uid = own;
        } else if lsid.uid != own && !server.principals.authority(&ctx.client)?.may_on_cluster(instead) {
            let text = "Unauthorized to set user digest in LogicalSessionId";
            return Err(Error::new(ErrorCode::Unauthorized, text));
        }
    }
    Ok(listed)
}

pub(super) async fn refresh(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let max = server.instance.params.int(pando_command::Param::maxSessions) as usize;
    RefreshSessionsArgs::parse(&req)?;
    let listed = named(server, ctx, &req, &REFRESH, Action::Impersonate)?;
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
    let listed = named(server, ctx, &req, &END, Action::Impersonate)?;
    ctx.arguments_read()?;
    for lsid in listed {
        server.sessions.cache.end(&lsid);
    }
    Ok(Reply::new())
}

pub(super) async fn kill(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let which = named(server, ctx, &req, &KILL, Action::KillAnySession)?;
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
    let users = KILL_ALL.read(&req)?;
    let mut digests = Vec::with_capacity(users.len());
    for user in &users {
        let text = |name: &str| user.get(name).and_then(|v| v.as_str()).unwrap_or_default();
        let name = UserName::new(text("user"), text("db"));
        if server.principals.user(&name)?.is_none() {
            let text = format!("Could not find user \"{}\" for db \"{}\"", name.user, name.db);
            return Err(Error::new(ErrorCode::UserNotFound, text));
        }
        digests.push(name.digest());
    }
    kill_where(server, ctx, |lsid| digests.is_empty() || digests.contains(&lsid.uid));
    Ok(Reply::new())
}

pub(super) async fn kill_by_pattern(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let patterns = KILL_BY_PATTERN.read(&req)?;
    kill_where(server, ctx, |lsid| {
        patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, lsid, ctx.owner()))
    });
    Ok(Reply::new())
}

/// A session, a user's, or all. One that does not say whose is the caller's own.
fn fits(pattern: &RawDoc, lsid: &SessionId, own: Option<[u8; 32]>) -> bool {
    if let Some(Value::Document(one)) = pattern.get("lsid") {
        return lsid_of(one).is_some_and(|mut wanted| {
            if wanted.uid == NO_USER_DIGEST {
                wanted.uid = own.unwrap_or(NO_USER_DIGEST);
            }
            wanted == *lsid
        });
    }
    match pattern.get("uid") {
        Some(Value::Binary { bytes, .. }) => bytes == lsid.uid,
        _ => true,
    }
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
