//! `_keptSessions`: what sessions have done here, for a member that copies the data (R-IS).

use super::prelude::*;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    for arg in req.args("_keptSessions") {
        return Err(arg.unknown());
    }
    if server.repl.is_replicated() && !server.repl.is_readable() {
        let text = "node is not in primary or recovering state";
        return Err(Error::new(ErrorCode::NotPrimaryOrSecondary, text));
    }
    let Some(kept) = server.collect_sessions().await? else {
        return Err(Error::new(ErrorCode::LockBusy, "sessions are in use, or too many"));
    };
    let mut r = Reply::with_capacity(kept.sessions.iter().map(|s| s.byte_len() + 16).sum::<usize>() + 128);
    r.body.doc("upto", |b| {
        b.timestamp("ts", kept.upto.ts).i64("t", kept.upto.t);
    });
    r.body.timestamp("oldestActive", server.oldest_active(&kept, kept.upto.ts)?);
    r.body.array("sessions", |a| {
        for session in &kept.sessions {
            a.raw_doc(session);
        }
    });
    Ok(r)
}
