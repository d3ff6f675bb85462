//! `authenticate`: a login in one message, by the certificate of the connection.

use super::prelude::*;
use pando_auth::certificate::X509;
use pando_auth::{Mechanism, UserName};
use pando_request::AuthenticateArgs;
use pando_request::settings::login::unavailable;

pub async fn run(node: &impl KeepsUsers, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = AuthenticateArgs::parse(&req)?;
    let user = log_in(node, ctx, &args, req.db, false).await?;
    let mut r = Reply::new();
    append(&mut r.body, &user);
    Ok(r)
}

/// `hello.speculativeAuthenticate` with such a login; one that fails is as if it had not been sent.
pub(super) async fn speculate(node: &dyn KeepsUsers, ctx: &OpCtx, req: &Request<'_>, b: &mut DocBuilder) {
    let Ok(args) = AuthenticateArgs::parse(req) else { return };
    if let Ok(user) = log_in(node, ctx, &args, req.db, true).await {
        b.doc("speculativeAuthenticate", |d| append(d, &user));
    }
}

async fn log_in(
    node: &dyn KeepsUsers,
    ctx: &OpCtx,
    args: &AuthenticateArgs<'_>,
    db: &str,
    speculative: bool,
) -> Result<UserName> {
    if args.mechanism != X509 {
        node.tell_unavailable(&ctx.client, db, args.mechanism).await;
        return Err(match Mechanism::of_name(args.mechanism) {
            Some(_) => Error::bad_value(format!("Unsupported mechanism: {}", args.mechanism)),
            None => unavailable(args.mechanism),
        });
    }
    node.log_in_by_certificate(&ctx.client, db, args.user, speculative).await
}

fn append(b: &mut DocBuilder, user: &UserName) {
    b.str("dbname", &user.db).str("user", &user.user);
}
