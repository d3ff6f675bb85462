//! `rotateCertificates`: reads the files of `net.tls`, and the keyfile, again, for connections from now on. If one of them cannot be used,
//! nothing changes. (6.0.5 reads a keyfile once, and wants a restart of each member for another key.)

use super::prelude::*;
use pando_env::Component;

pub async fn run(node: &impl KeepsUsers, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut message = None;
    for arg in req.given_args("rotateCertificates", &["message"]) {
        match arg.name() {
            "message" => message = Some(arg.str()?),
            _ => return Err(arg.unknown()),
        }
    }
    let keys = node.logins().cluster_auth.keys();
    let read = keys.map(|keys| keys.read_again()).transpose()?;
    let text = match &node.logins().certificates {
        Some(certificates) => {
            certificates.rotate(&ctx.env().log).await?;
            "Successfully rotated X509 certificates."
        }
        None => "There are no certificates to read again: TLS is not used",
    };
    // Everything could be read.
    if let (Some(keys), Some(read)) = (keys, read) {
        keys.replace(read);
    }
    ctx.env().log.info(Component::Network, 4_913_400, text, |a| {
        if let Some(text) = message {
            a.str("message", text);
        }
    });
    Ok(Reply::new())
}
