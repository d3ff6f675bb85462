//! `rotateCertificates`: reads the files of `net.tls` again, for connections from now on. If one of them cannot be used, nothing
//! changes. Without TLS there are none, and nothing is left to do.

use super::prelude::*;
use pando_env::Component;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut message = None;
    for arg in req.given_args("rotateCertificates", &["message"]) {
        match arg.name() {
            "message" => message = Some(arg.str()?),
            _ => return Err(arg.unknown()),
        }
    }
    let text = match &server.config.certificates {
        Some(certificates) => {
            certificates.rotate(&ctx.env().log).await?;
            "Successfully rotated X509 certificates."
        }
        None => "There are no certificates to read again: TLS is not used",
    };
    ctx.env().log.info(Component::Network, 4_913_400, text, |a| {
        if let Some(text) = message {
            a.str("message", text);
        }
    });
    Ok(Reply::new())
}
