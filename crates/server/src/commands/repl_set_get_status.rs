//! `replSetGetStatus`: this member's view of the set (R-STATE-4).

use super::prelude::*;
use pando_repl::show::{StatusAt, append_status};

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.replication.member.require_config()?;
    truth(&req, "initialSync")?;
    let mut r = Reply::with_capacity(2048);
    let uptime = ctx.env().clock.mono().saturating_sub(server.instance.started).as_secs();
    let at = StatusAt {
        catch_up_ops: server.replication.catch_ups.last(),
        positions: server.replication.positions(),
        stable: server.storage.stable(),
        now_ms: ctx.env().clock.wall_ms(),
        uptime_secs: uptime as i64,
    };
    match server.replication.coordinator.get() {
        Some(c) => c.read(|core| append_status(&mut r.body, core, &at)),
        None => server.replication.member.append_followers_status(&mut r.body, &at),
    }
    // Left out when asked so; shown only as long as the sync runs.
    if req.body.get("initialSync").is_none_or(|v| v.is_truthy())
        && let Some(status) = server.replication.initial_sync_status()
    {
        r.body.doc("initialSyncStatus", |d| status.append_to(d, at.now_ms));
    }
    Ok(r)
}

/// A field that must be a boolean or a number where it is given.
pub(super) fn truth(req: &Request<'_>, field: &str) -> Result<bool> {
    match req.body.get(field) {
        None => Ok(false),
        Some(v) if v.is_number() || matches!(v, Value::Boolean(_)) => Ok(v.is_truthy()),
        Some(v) => Err(Error::type_mismatch(format!(
            "Expected boolean or number type for field \"{field}\", found {}",
            v.type_name()
        ))),
    }
}
