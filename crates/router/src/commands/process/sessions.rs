//! `startSession`, `refreshSessions`, `endSessions`, `killSessions` and their kind. What sessions have done is with the shards: what
//! is killed is killed there, too.

use super::super::prelude::*;
use pando_auth::Action;
use pando_base::session_id::{NO_USER_DIGEST, SessionId};
use pando_command::Param;
use pando_logins::sessions;
use pando_metadata_cache::Target;
use pando_monitor::ReadPreference;
use pando_oplog::session::{lsid_doc, lsid_of};
use pando_request::session::sessions::{END, KILL, KILL_ALL, KILL_BY_PATTERN, Listed, REFRESH};
use pando_request::{EndSessionsArgs, RefreshSessionsArgs};
use pando_rpc::Retry;

pub(in crate::commands) async fn start(router: &Router, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut id = [0; 16];
    router.instance.env.rng.fill(&mut id);
    // Version 4, variant 1.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    touch(router, ctx, [SessionId::of_user(id, ctx.owner().unwrap_or(NO_USER_DIGEST))])?;
    let mut r = Reply::new();
    r.body.doc("id", |d| _ = d.uuid("id", &id));
    r.body.i32("timeoutMinutes", pando_base::limits::SESSION_TIMEOUT_MINUTES as i32);
    Ok(r)
}

fn touch(router: &Router, ctx: &OpCtx, sessions: impl IntoIterator<Item = SessionId>) -> Result<()> {
    let max = router.instance.params.int(Param::maxSessions) as usize;
    sessions.into_iter().try_for_each(|lsid| router.sessions.touch(&lsid, ctx.started, max))
}

/// The sessions that a list names.
async fn named(
    router: &Router,
    ctx: &OpCtx,
    req: &Request<'_>,
    list: &Listed,
    instead: Action,
) -> Result<Vec<SessionId>> {
    let listed = list.read(req)?.into_iter().filter_map(lsid_of).collect();
    sessions::named(router, ctx, listed, instead).await
}

pub(in crate::commands) async fn refresh(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    RefreshSessionsArgs::parse(&req)?;
    let listed = named(router, ctx, &req, &REFRESH, Action::Impersonate).await?;
    ctx.arguments_read()?;
    touch(router, ctx, listed)?;
    Ok(Reply::new())
}

/// Shards hear of it in the next round.
pub(in crate::commands) async fn end(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    EndSessionsArgs::parse(&req)?;
    let listed = named(router, ctx, &req, &END, Action::Impersonate).await?;
    ctx.arguments_read()?;
    listed.iter().for_each(|lsid| router.sessions.end(lsid));
    Ok(Reply::new())
}

pub(in crate::commands) async fn tell(router: &Router, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    router.tell_sessions().await?;
    Ok(Reply::new())
}

pub(in crate::commands) async fn kill(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let which = named(router, ctx, &req, &KILL, Action::KillAnySession).await?;
    let own = ctx.owner();
    let is_own = |lsid: &SessionId| own.is_none_or(|own| lsid.uid == own);
    // An empty list means all sessions of the caller.
    kill_where(router, ctx, |lsid| if which.is_empty() { is_own(lsid) } else { which.contains(lsid) });
    let patterns: Vec<DocBuf> = match which.is_empty() {
        true => own.iter().map(of_user).collect(),
        false => which.iter().map(of_session).collect(),
    };
    kill_on_shards(router, ctx, &patterns).await
}

fn of_session(lsid: &SessionId) -> DocBuf {
    let mut b = DocBuilder::new();
    b.raw_doc("lsid", &lsid_doc(lsid));
    b.finish()
}
fn of_user(digest: &[u8; 32]) -> DocBuf {
    let mut b = DocBuilder::new();
    b.binary("uid", 0, digest);
    b.finish()
}

pub(in crate::commands) async fn kill_all(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let users = KILL_ALL.read(&req)?;
    if !users.is_empty() && ctx.owner().is_none() {
        // Where nobody logs in, users have no sessions.
        return Ok(Reply::new());
    }
    let digests = sessions::digests_of_users(router, &users).await?;
    kill_where(router, ctx, |lsid| digests.is_empty() || digests.contains(&lsid.uid));
    let patterns: Vec<DocBuf> = digests.iter().map(of_user).collect();
    kill_on_shards(router, ctx, &patterns).await
}

pub(in crate::commands) async fn kill_by_pattern(
    router: &Router,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let patterns = KILL_BY_PATTERN.read(&req)?;
    let fits = |lsid: &SessionId| {
        patterns.is_empty() || patterns.iter().any(|pattern| sessions::fits(pattern, lsid, ctx.owner()))
    };
    kill_where(router, ctx, fits);
    let patterns: Vec<DocBuf> =
        patterns.into_iter().map(|pattern| for_shards(pattern, ctx.owner())).collect();
    kill_on_shards(router, ctx, &patterns).await
}

/// Shards take a session that does not say whose it is for this router's.
fn for_shards(pattern: &RawDoc, own: Option<[u8; 32]>) -> DocBuf {
    let named = pattern.get("lsid").and_then(|v| v.as_doc()).and_then(lsid_of);
    match (named, own) {
        (Some(mut lsid), Some(own)) if lsid.uid == NO_USER_DIGEST => {
            lsid.uid = own;
            of_session(&lsid)
        }
        _ => pattern.to_buf(),
    }
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
