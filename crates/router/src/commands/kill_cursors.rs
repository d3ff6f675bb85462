//! `killCursors`: the client will not ask for more. Cursors on shards end with it.

use super::prelude::*;
use pando_request::KillCursorsArgs;
use pando_session::cursors::Killed;
use pando_session::rights;

pub(super) async fn run(router: &Router, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = KillCursorsArgs::parse(&req)?;
    req.ns()?;
    ctx.arguments_read()?;
    for id in args.ids() {
        rights::check_killer(&router.cursors, router, ctx, id)?;
    }
    let now = ctx.env().clock.mono();
    let (mut killed, mut not_found) = (Vec::new(), Vec::new());
    for id in args.ids() {
        match router.cursors.kill(id, now) {
            Killed::Gone => killed.push(id),
            Killed::InUse(op) => {
                router.instance.clients.kill_where(ErrorCode::CursorKilled, |_, running| running.op_id == op);
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
