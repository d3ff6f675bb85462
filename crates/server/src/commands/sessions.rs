//! `startSession`, `refreshSessions`, `endSessions`, `killSessions`, `killAllSessions`,
//! `killAllSessionsByPattern`: the life of logical sessions.

use super::prelude::*;
use pando_command::Lsid;
use pando_command::request::{missing, wrong_type};

pub(super) async fn start(server: &Server, ctx: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut id = [0; 16];
    server.env.rng.fill(&mut id);
    // Version 4, variant 1.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    let max = server.instance.params.int(pando_command::Param::maxSessions) as usize;
    server.sessions.touch(&Lsid { id, uid: None }, ctx.started, max)?;
    let mut r = Reply::new();
    r.body.doc("id", |d| {
        d.uuid("id", &id);
    });
    r.body.i32("timeoutMinutes", pando_base::limits::SESSION_TIMEOUT_MINUTES as i32);
    Ok(r)
}

/// The sessions named by `command: [{id}, ..]`.
fn named(req: &Request<'_>) -> Result<Vec<Lsid>> {
    let name = req.name;
    let Value::Array(list) = req.first().value() else {
        return Err(wrong_type(name, name, &req.first().value(), &["array"]));
    };
    if let Some(arg) = req.args(name).next() {
        return Err(arg.unknown());
    }
    list.iter()
        .map(|e| {
            let path = format!("{name}.{}", e.name());
            let Value::Document(d) = e.value() else {
                return Err(wrong_type(name, &path, &e.value(), &["object"]));
            };
            match d.get("id") {
                Some(Value::Binary { subtype: 4, bytes }) if bytes.len() == 16 => {
                    let mut id = [0; 16];
                    id.copy_from_slice(bytes);
                    Ok(Lsid { id, uid: None })
                }
                Some(v) => Err(wrong_type(name, &format!("{path}.id"), &v, &["binData"])),
                None => Err(missing(name, &format!("{path}.id"))),
            }
        })
        .collect()
}

pub(super) async fn refresh(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let max = server.instance.params.int(pando_command::Param::maxSessions) as usize;
    for lsid in named(&req)? {
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
    for lsid in named(&req)? {
        server.sessions.end(&lsid);
    }
    Ok(Reply::new())
}

pub(super) async fn kill(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let which = named(&req)?;
    if which.is_empty() {
        // An empty list means all sessions of the caller.
        kill_where(server, ctx, |_| true);
    } else {
        kill_where(server, ctx, |lsid| which.iter().any(|w| w.id == lsid.id));
    }
    Ok(Reply::new())
}

pub(super) async fn kill_all(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Value::Array(users) = req.first().value() else {
        return Err(wrong_type(req.name, req.name, &req.first().value(), &["array"]));
    };
    // Without authentication all sessions belong to nobody in particular.
    if users.is_empty() {
        kill_where(server, ctx, |_| true);
    }
    Ok(Reply::new())
}

pub(super) async fn kill_by_pattern(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let Value::Array(patterns) = req.first().value() else {
        return Err(wrong_type(req.name, req.name, &req.first().value(), &["array"]));
    };
    let wanted: Vec<Option<[u8; 16]>> = patterns
        .iter()
        .filter_map(|e| e.value().as_doc())
        .map(|p| match p.get("lsid").and_then(|v| v.as_doc()).and_then(|d| d.get("id")) {
            Some(Value::Binary { bytes, .. }) => bytes.try_into().ok(),
            _ => None,
        })
        .collect();
    let all = wanted.is_empty() || wanted.iter().any(Option::is_none);
    kill_where(server, ctx, |lsid| all || wanted.contains(&Some(lsid.id)));
    Ok(Reply::new())
}

/// Interrupts the operations of the sessions and drops their cursors.
fn kill_where(server: &Server, ctx: &OpCtx, which: impl Fn(&Lsid) -> bool) {
    let me = ctx.op_id;
    server
        .instance
        .clients
        .kill_where(ErrorCode::Interrupted, |_, op| op.op_id != me && op.lsid.as_ref().is_some_and(&which));
    for open in server.idle_transactions() {
        if which(&open.lsid) {
            server.abort_session(&open.lsid.id, ErrorCode::Interrupted);
        }
    }
    let now = ctx.env().clock.mono();
    server.cursors.kill_where(now, |c| c.lsid.as_ref().is_some_and(&which));
}
