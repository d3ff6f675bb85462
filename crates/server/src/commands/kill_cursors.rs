//! `killCursors`: the client will not ask for more.

use super::prelude::*;
use pando_auth::{Action, Target};
use pando_request::KillCursorsArgs;
use pando_session::cursors::Killed;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = KillCursorsArgs::parse(&req)?;
    req.ns()?;
    ctx.arguments_read()?;
    for id in args.ids() {
        check_own(server, ctx, id)?;
    }
    let now = ctx.env().clock.mono();
    let (mut killed, mut not_found) = (Vec::new(), Vec::new());
    for id in args.ids() {
        match server.crud.cursors.open.kill(id, now) {
            Killed::Gone => killed.push(id),
            Killed::InUse(op) => {
                server.instance.clients.kill_where(ErrorCode::CursorKilled, |_, running| running.op_id == op);
                killed.push(id);
            }
            Killed::NotFound => not_found.push(id),
        }
    }
    let mut r = Reply::new();
    for (name, ids) in [
        ("cursorsKilled", killed),
        ("cursorsNotFound", not_found),
        ("cursorsAlive", vec![]),
        ("cursorsUnknown", vec![]),
    ] {
        r.body.array(name, |a| {
            for id in ids {
                a.value(Value::Int64(id));
            }
        });
    }
    Ok(r)
}

/// Others' cursors are killed by an action of its own, on what they read.
fn check_own(server: &Server, ctx: &OpCtx, id: i64) -> Result<()> {
    let owner = ctx.owner();
    let Some((ns, whose)) = server.crud.cursors.open.whose(id).filter(|_| owner.is_some()) else {
        return Ok(());
    };
    let who = server.principals.authority(&ctx.client)?;
    let target = Target::Collection(ns.db(), ns.coll());
    if whose == owner || who.may(target, &[Action::KillAnyCursor]) {
        return Ok(());
    }
    Err(Error::new(ErrorCode::Unauthorized, format!("not authorized to kill cursor {id} on {ns}")))
}
