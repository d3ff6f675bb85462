//! `connectionStatus`: who is logged in on this connection, and what that allows.

use super::prelude::*;
use pando_auth::roles::RoleName;

pub(super) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut privileges = false;
    for arg in req.given_args("connectionStatus", &["showPrivileges"]) {
        match arg.name() {
            "showPrivileges" => privileges = arg.boolish()?,
            _ => return Err(arg.unknown()),
        }
    }
    let user = ctx.client.login().user().cloned();
    let known = match &user {
        Some(user) => server.principals.logged_in(user)?,
        None => None,
    };
    if known.is_none() {
        ctx.client.login().forget();
    }
    let mut r = Reply::new();
    r.body.doc("authInfo", |d| {
        d.array("authenticatedUsers", |a| {
            if let Some((known, _)) = &known {
                a.doc(|d| {
                    d.str("user", &known.name.user).str("db", &known.name.db);
                });
            }
        });
        let all = known.as_ref().map(|(_, resolved)| resolved);
        d.array("authenticatedUserRoles", |a| {
            for role in all.into_iter().flat_map(|all| &all.roles) {
                a.value(Value::Document(&RoleName::document(role).to_raw()));
            }
        });
        if privileges {
            d.array("authenticatedUserPrivileges", |a| {
                for each in all.into_iter().flat_map(|all| all.privileges.documents()) {
                    a.value(Value::Document(&each.to_raw()));
                }
            });
        }
    });
    Ok(r)
}
