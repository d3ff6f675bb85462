//! `replSetTest` and `makeSnapshot` (test commands): a test waits for a member to be in a state, and asks where it is.

use super::prelude::*;
use pando_command::args::safe_i64;
use pando_repl::topology::MemberState;
use std::time::Duration;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    server.replication.member.require_replication()?;
    let mut r = Reply::new();
    if let Some(v) = req.body.get("waitForMemberState") {
        let wanted = number("waitForMemberState", Some(v))?;
        let ms = number("timeoutMillis", req.body.get("timeoutMillis"))?;
        let wanted = MemberState::from_number(wanted);
        let wanted = wanted.ok_or_else(|| Error::bad_value("Unrecognized numerical state"))?;
        await_state(server, ctx, wanted, ms.max(0) as u64).await?;
    } else if req.body.get("getLastStableRecoveryTimestamp").is_some() {
        r.body.timestamp("lastStableRecoveryTimestamp", server.storage.stable());
    }
    Ok(r)
}

/// A number, in the words of a command that has no typed arguments.
fn number(name: &str, v: Option<Value<'_>>) -> Result<i64> {
    let Some(v) = v else {
        return Err(Error::new(ErrorCode::NoSuchKey, format!("Missing expected field \"{name}\"")));
    };
    safe_i64(&v).ok_or_else(|| {
        let found = v.type_name();
        Error::type_mismatch(format!("Expected field \"{name}\" to have numeric type, but found {found}"))
    })
}

async fn await_state(server: &Server, ctx: &OpCtx, wanted: MemberState, ms: u64) -> Result<()> {
    let reached = async {
        loop {
            let seen = server.replication.member.changed().version();
            if server.replication.member.state().member == wanted {
                return;
            }
            server.replication.member.changed().changed(seen).await;
        }
    };
    match ctx.env().timeout(Duration::from_millis(ms), ctx.interruptible(reached)).await {
        Some(done) => done,
        None => Err(Error::new(
            ErrorCode::ExceededTimeLimit,
            format!(
                "Timed out waiting for state to become {}. Current state is {}",
                wanted.text(),
                server.replication.member.state().member.text()
            ),
        )),
    }
}

/// What has been applied so far has this number as its name.
pub(super) async fn snapshot(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    server.replication.member.require_replication()?;
    let ts = server.replication.last_applied().ts;
    let mut r = Reply::new();
    r.body.i64("name", (u64::from(ts.secs()) << 32 | u64::from(ts.inc())) as i64);
    Ok(r)
}
