//! `startSession`, `refreshSessions`, `endSessions`, `killSessions` and their kind. What sessions have done is with the shards: what
//! is killed is killed there, too.

use super::super::prelude::*;
use pando_base::session_id::SessionId;
use pando_command::Param;
use pando_metadata_cache::Target;
use pando_monitor::ReadPreference;
use pando_request::session::sessions::{END, KILL, KILL_ALL, KILL_BY_PATTERN, REFRESH};
use pando_request::{EndSessionsArgs, RefreshSessionsArgs};
use pando_rpc::Retry;

pub(in crate::commands) async fn start(router: &Router, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut id = [0; 16];
    router.instance.env.rng.fill(&mut id);
    // Version 4, variant 1.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    touch(router, ctx, [SessionId::of(id)])?;
    let mut r = Reply::new();
    r.body.doc("id", |d| _ = d.uuid("id", &id));
    r.body.i32("timeoutMinutes", pando_base::limits::SESSION_TIMEOUT_MINUTES as i32);
    Ok(r)
}

fn touch(router: &Router, ctx: &OpCtx, sessions: impl IntoIterator<Item = SessionId>) -> Result<()> {
    let max = router.instance.params.int(Param::maxSessions) as usize;
    sessions.into_iter().try_for_each(|lsid| router.sessions.touch(&lsid, ctx.started, max))
}

pub(in crate::commands) async fn refresh(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    RefreshSessionsArgs::parse(&req)?;
    let listed = REFRESH.read(&req)?;
    ctx.arguments_read()?;
    touch(router, ctx, listed.into_iter().filter_map(id_of).map(SessionId::of))?;
    Ok(Reply::new())
}

/// Shards hear of it in the next round.
pub(in crate::commands) async fn end(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    EndSessionsArgs::parse(&req)?;
    let listed = END.read(&req)?;
    ctx.arguments_read()?;
    listed.into_iter().filter_map(id_of).for_each(|id| router.sessions.end(&SessionId::of(id)));
    Ok(Reply::new())
}

pub(in crate::commands) async fn tell(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    router.tell_sessions().await?;
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
    let listed = KILL.read(&req)?;
    let which: Vec<[u8; 16]> = listed.iter().copied().filter_map(id_of).collect();
    kill_where(router, ctx, |lsid| which.is_empty() || which.contains(&lsid.id));
    let patterns: Vec<DocBuf> = listed.into_iter().map(pattern_of).collect();
    kill_on_shards(router, ctx, &patterns).await
}

fn pattern_of(session: &RawDoc) -> DocBuf {
    let mut b = DocBuilder::new();
    b.raw_doc("lsid", session);
    b.finish()
}

/// Nobody logs in at a router yet, so users that are named have no sessions.
pub(in crate::commands) async fn kill_all(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    if !KILL_ALL.read(&req)?.is_empty() {
        return Ok(Reply::new());
    }
    kill_where(router, ctx, |_| true);
    kill_on_shards(router, ctx, &[]).await
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
    let patterns: Vec<DocBuf> = patterns.into_iter().map(RawDoc::to_buf).collect();
    kill_on_shards(router, ctx, &patterns).await
}

fn kill_where(router: &Router, ctx: &OpCtx, which: impl Fn(&SessionId) -> bool) {
    let me = ctx.op_id;
    let of = |lsid: Option<&SessionId>| lsid.is_some_and(&which);
    let clients = &router.instance.clients;
    clients.kill_where(ErrorCode::Interrupted, |_, op| op.op_id != me && of(op.lsid.as_ref()));
    router.cursors.kill_where(ctx.env().clock.mono(), |c| of(c.lsid.as_ref()));
}

/// All sessions where there are no patterns.
async fn kill_on_shards(router: &Router, ctx: &OpCtx, patterns: &[DocBuf]) -> Result<Reply> {
    let shards = router.catalog.shards().await?;
    let targets: Vec<Target> = shards.iter().map(|s| Target::unversioned(s.entry.id.clone())).collect();
    let body = |_: &Target| {
        let mut b = DocBuilder::new();
        b.array("killAllSessionsByPattern", |a| patterns.iter().for_each(|p| _ = a.raw_doc(p)));
        b.str("$db", "admin");
        b.finish()
    };
    router.gather(ctx, &targets, &ReadPreference::default(), Retry::Idempotent, body).await?;
    Ok(Reply::new())
}
