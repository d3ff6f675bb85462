//! `startSession`, `refreshSessions`, `endSessions`, `killSessions`, `killAllSessions`,
//! `killAllSessionsByPattern`: the life of logical sessions.

use super::prelude::*;
use pando_bson::shape::{Field, Shape, check_fields};
use pando_command::SessionId;
use pando_command::request::wrong_type;
use pando_oplog::session::lsid_of;

pub(super) async fn start(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut id = [0; 16];
    server.env.rng.fill(&mut id);
    // Version 4, variant 1.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    let max = server.instance.params.int(pando_command::Param::maxSessions) as usize;
    server.sessions.touch(&SessionId::of(id), ctx.started, max)?;
    let mut r = Reply::new();
    r.body.doc("id", |d| {
        d.uuid("id", &id);
    });
    r.body.i32("timeoutMinutes", pando_base::limits::SESSION_TIMEOUT_MINUTES as i32);
    Ok(r)
}

const SESSION: &[Field] = &[Field::required("id", Shape::Uuid), Field::optional("uid", Shape::Digest)];

/// The sessions named by `command: [{id}, ..]`; `element` is the place of one in messages.
fn named(req: &Request<'_>, element: &str) -> Result<Vec<SessionId>> {
    let mut out = Vec::new();
    for e in listed(req)? {
        match e.value() {
            Value::Null | Value::Undefined => continue,
            Value::Document(d) => {
                check_fields(SESSION, element, d)?;
                out.extend(lsid_of(d));
            }
            v => return Err(wrong_type(element, e.name(), &v, &["object"])),
        }
    }
    Ok(out)
}

/// The list that the command's own element is.
fn listed<'a>(req: &Request<'a>) -> Result<&'a RawDoc> {
    let v = req.first().value();
    Shape::List(&Shape::Any).check(&format!("{0}.{0}", req.name), &v)?;
    match v {
        Value::Array(list) => Ok(list),
        v => Err(wrong_type(req.name, req.name, &v, &["array"])),
    }
}

/// The list of a command that may kill anybody's sessions, each element of which has these fields.
fn patterns<'a>(req: &Request<'a>, element: &str, fields: &'static [Field]) -> Result<Vec<&'a RawDoc>> {
    let mut out = Vec::new();
    for e in listed(req)? {
        match e.value() {
            Value::Null | Value::Undefined => {}
            Value::Document(d) => {
                check_fields(fields, element, d)?;
                out.push(d);
            }
            v => return Err(wrong_type(element, e.name(), &v, &["object"])),
        }
    }
    Ok(out)
}

pub(super) async fn refresh(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let max = server.instance.params.int(pando_command::Param::maxSessions) as usize;
    req.check("refreshSessions", &[])?;
    for lsid in named(&req, "refreshSessions.refreshSessionsFromClient")? {
        server.sessions.touch(&lsid, ctx.started, max)?;
    }
    Ok(Reply::new())
}

pub(super) async fn refresh_now(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.refresh_sessions().await?;
    Ok(Reply::new())
}

/// Ended sessions lose their cursors at the next sweep, as in MongoDB; a client may still be draining one.
pub(super) async fn end(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("endSessions", &[])?;
    for lsid in named(&req, "endSessions.endSessionsFromClient")? {
        server.sessions.end(&lsid);
    }
    Ok(Reply::new())
}

pub(super) async fn kill(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let which = named(&req, "KillSessionsCmd.killSessions")?;
    if which.is_empty() {
        // An empty list means all sessions of the caller.
        kill_where(server, ctx, |_| true);
    } else {
        kill_where(server, ctx, |lsid| which.iter().any(|w| w == lsid));
    }
    Ok(Reply::new())
}

const USER: &[Field] = &[Field::required("user", Shape::String), Field::required("db", Shape::String)];
const ROLE: &[Field] = &[Field::required("role", Shape::String), Field::required("db", Shape::String)];
const PATTERN: &[Field] = &[
    Field::optional("lsid", Shape::Fields(SESSION)),
    Field::optional("uid", Shape::Digest),
    Field::optional("users", Shape::List(&Shape::Fields(USER))),
    Field::optional("roles", Shape::List(&Shape::Fields(ROLE))),
];

pub(super) async fn kill_all(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let users = patterns(&req, "KillAllSessionsCmd.killAllSessions", USER)?;
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
    let patterns = patterns(&req, "KillAllSessionsByPatternCmd.killAllSessionsByPattern", PATTERN)?;
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
    for open in server.idle_transactions() {
        if which(&open.lsid) {
            server.abort_session(&open.lsid, ErrorCode::Interrupted);
        }
    }
    let now = ctx.env().clock.mono();
    server.cursors.kill_where(now, |c| c.lsid.as_ref().is_some_and(&which));
}
