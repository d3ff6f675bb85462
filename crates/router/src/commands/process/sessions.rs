//! `startSession`, `refreshSessions`, `endSessions`, `killSessions` and their kind: a router keeps no record of sessions, only
//! cursors and operations that belong to them. What sessions have done is with the shards.

use super::super::prelude::*;
use pando_base::session_id::SessionId;
use pando_request::session::sessions::{END, KILL, KILL_ALL, KILL_BY_PATTERN, REFRESH};
use pando_request::{EndSessionsArgs, RefreshSessionsArgs};

pub(in crate::commands) async fn start(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut id = [0; 16];
    router.instance.env.rng.fill(&mut id);
    // Version 4, variant 1.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    let mut r = Reply::new();
    r.body.doc("id", |d| _ = d.uuid("id", &id));
    r.body.i32("timeoutMinutes", pando_base::limits::SESSION_TIMEOUT_MINUTES as i32);
    Ok(r)
}

pub(in crate::commands) async fn refresh(_: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    RefreshSessionsArgs::parse(&req)?;
    REFRESH.read(&req)?;
    ctx.arguments_read()?;
    Ok(Reply::new())
}

pub(in crate::commands) async fn end(_: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    EndSessionsArgs::parse(&req)?;
    END.read(&req)?;
    ctx.arguments_read()?;
    Ok(Reply::new())
}

/// The number of a session.
fn id_of(doc: &RawDoc) -> Option<[u8; 16]> {
    match doc.get("id") {
        Some(Value::Binary { bytes, .. }) => bytes.try_into().ok(),
        _ => None,
    }
}

pub(in crate::commands) async fn kill(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let which: Vec<[u8; 16]> = KILL.read(&req)?.into_iter().filter_map(id_of).collect();
    kill_where(router, ctx, |lsid| which.is_empty() || which.contains(&lsid.id));
    Ok(Reply::new())
}

pub(in crate::commands) async fn kill_all(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    KILL_ALL.read(&req)?;
    kill_where(router, ctx, |_| true);
    Ok(Reply::new())
}

pub(in crate::commands) async fn kill_by_pattern(
    router: &Router,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let patterns = KILL_BY_PATTERN.read(&req)?;
    let fits = |lsid: &SessionId| {
        let mut named = patterns.iter().filter_map(|p| p.get("lsid")?.as_doc()).filter_map(id_of).peekable();
        named.peek().is_none() || named.any(|id| id == lsid.id)
    };
    kill_where(router, ctx, fits);
    Ok(Reply::new())
}

fn kill_where(router: &Router, ctx: &OpCtx, which: impl Fn(&SessionId) -> bool) {
    let me = ctx.op_id;
    let of = |lsid: Option<&SessionId>| lsid.is_some_and(&which);
    let clients = &router.instance.clients;
    clients.kill_where(ErrorCode::Interrupted, |_, op| op.op_id != me && of(op.lsid.as_ref()));
    router.cursors.kill_where(ctx.env().clock.mono(), |c| of(c.lsid.as_ref()));
}
