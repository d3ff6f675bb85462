//! `killCursors`: the client will not ask for more.

use super::prelude::*;
use pando_bson::shape::Shape;
use pando_command::request::missing;
use pando_session::cursors::Killed;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.ns()?;
    let mut ids = None;
    for arg in req.args("killCursors") {
        match arg.name() {
            "cursors" => {
                arg.check(&Shape::List(&Shape::Long))?;
                // A null among them is passed over.
                ids = Some(arg.array()?.iter().filter_map(|e| e.value().as_i64()).collect::<Vec<_>>());
            }
            _ => return Err(arg.unknown()),
        }
    }
    let ids = ids.ok_or_else(|| missing("killCursors", "cursors"))?;
    let now = ctx.env().clock.mono();
    let (mut killed, mut not_found) = (Vec::new(), Vec::new());
    for id in ids {
        match server.cursors.kill(id, now) {
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
