//! `connectionStatus`: who is logged in on this connection, and what that allows.

use super::prelude::*;
use pando_auth::roles::RoleName;

pub async fn run(node: &impl KeepsUsers, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut privileges = false;
    for arg in req.given_args("connectionStatus", &["showPrivileges"]) {
        match arg.name() {
            "showPrivileges" => privileges = arg.boolish()?,
            _ => return Err(arg.unknown()),
        }
    }
    let who = node.authority_of(&ctx.client).await?;
    let mut r = Reply::new();
    r.body.doc("authInfo", |d| {
        d.array("authenticatedUsers", |a| {
            if let Some(user) = who.user() {
                a.doc(|d| {
                    d.str("user", &user.user).str("db", &user.db);
                });
            }
        });
        d.array("authenticatedUserRoles", |a| {
            for role in who.roles() {
                a.value(Value::Document(&RoleName::document(role).to_raw()));
            }
        });
        if privileges {
            let of_user = who.user().map(|_| who.privileges().documents());
            d.array("authenticatedUserPrivileges", |a| {
                for each in of_user.unwrap_or_default() {
                    a.value(Value::Document(&each.to_raw()));
                }
            });
        }
    });
    Ok(r)
}
