//! `authenticate`: a login in one message, by the certificate of the connection.

use crate::commands::prelude::*;
use pando_auth::certificate::X509;
use pando_auth::{Mechanism, UserName};
use pando_request::AuthenticateArgs;
use pando_request::settings::login::unavailable;

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = AuthenticateArgs::parse(&req)?;
    let user = log_in(server, ctx, &args, req.db, false)?;
    let mut r = Reply::new();
    append(&mut r.body, &user);
    Ok(r)
}

/// `hello.speculativeAuthenticate` with such a login; one that fails is as if it had not been sent.
pub(super) fn speculate(server: &Server, ctx: &OpCtx, req: &Request<'_>, b: &mut DocBuilder) {
    let Ok(args) = AuthenticateArgs::parse(req) else { return };
    if let Ok(user) = log_in(server, ctx, &args, req.db, true) {
        b.doc("speculativeAuthenticate", |d| append(d, &user));
    }
}

fn log_in(
    server: &Server,
    ctx: &OpCtx,
    args: &AuthenticateArgs<'_>,
    db: &str,
    speculative: bool,
) -> Result<UserName> {
    if args.mechanism != X509 {
        server.principals.tell_unavailable(&ctx.client, db, args.mechanism);
        return Err(match Mechanism::of_name(args.mechanism) {
            Some(_) => Error::bad_value(format!("Unsupported mechanism: {}", args.mechanism)),
            None => unavailable(args.mechanism),
        });
    }
    server.principals.log_in_by_certificate(&ctx.client, db, args.user, speculative)
}

fn append(b: &mut DocBuilder, user: &UserName) {
    b.str("dbname", &user.db).str("user", &user.user);
}
