//! `rotateCertificates`: reads certificates again. Without TLS there are none, and nothing is left to do.

use super::prelude::*;
use pando_env::Component;

pub(super) async fn run(_: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut message = None;
    for arg in req.given_args("rotateCertificates", &["message"]) {
        match arg.name() {
            "message" => message = Some(arg.str()?),
            _ => return Err(arg.unknown()),
        }
    }
    ctx.env().log.info(
        Component::Network,
        4_913_400,
        "There are no certificates to read again: TLS is not used",
        |a| {
            if let Some(text) = message {
                a.str("message", text);
            }
        },
    );
    Ok(Reply::new())
}
