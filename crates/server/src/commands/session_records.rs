//! `_keptSessions`: what sessions have done here, for a member that copies the data (R-IS).

use super::prelude::*;
use pando_base::limits;

pub(super) async fn run(server: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("_keptSessions", &[])?;
    if server.replication.member.is_replicated() && !server.replication.member.is_readable() {
        let text = "node is not in primary or recovering state";
        return Err(Error::new(ErrorCode::NotPrimaryOrSecondary, text));
    }
    let Some(kept) = server.sessions.collect()? else {
        return Err(Error::new(ErrorCode::LockBusy, "sessions are not known, or too many"));
    };
    let total = kept.sessions.iter().map(|s| s.byte_len()).sum::<usize>();
    let mut r = Reply::with_capacity(total + kept.sessions.len() * 16 + 128);
    r.body.doc("upto", |b| {
        b.timestamp("ts", kept.upto.ts).i64("t", kept.upto.t);
    });
    r.body.timestamp("oldestActive", server.sessions.oldest_active(&kept, kept.upto.ts)?);
    r.body.array("sessions", |a| {
        let mut bytes = total.saturating_sub(limits::SESSION_RECORDS_BYTES_MAX);
        for session in &kept.sessions {
            // The copy's log begins later than these entries.
            let more = pando_session::retryable::with_images(session, &mut bytes, |at| {
                server.sessions.image_of_entry(at)
            });
            a.raw_doc(more.as_deref().unwrap_or(session));
        }
    });
    Ok(r)
}
