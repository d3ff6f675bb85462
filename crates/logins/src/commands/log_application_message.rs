//! `logApplicationMessage`: a message of the caller's in the audit log.

use super::prelude::*;
use pando_audit::Event;

pub async fn run<S: KeepsUsers>(_: &S, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    req.check("logApplicationMessage", &[])?;
    let text = req.first_str("logApplicationMessage")?;
    ctx.client.audit(|| Event::application_message(text));
    Ok(Reply::new())
}
