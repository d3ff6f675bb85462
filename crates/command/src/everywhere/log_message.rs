//! `logMessage` (test command): writes a line to the log, so that a test finds its place there.

use crate::{Node, OpCtx, Reply, Request};
use pando_base::Result;
use pando_base::redaction::ClientText;
use pando_env::Component;

pub async fn run<S: Node>(_: &S, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut extra = None;
    for arg in req.given_args("logMessage", &["extra"]) {
        match arg.name() {
            "extra" => extra = Some(arg.doc()?),
            _ => return Err(arg.unknown()),
        }
    }
    let text = req.first_str("logMessage")?;
    ctx.env().log.info(Component::Command, 5_060_500, "logMessage", |a| {
        a.data("msg", &ClientText(text));
        if let Some(extra) = extra {
            a.data("extra", extra);
        }
    });
    Ok(Reply::new())
}
