//! `connectionStatus`: who is logged in on this connection.

use super::prelude::*;

pub(super) async fn run(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut privileges = false;
    for arg in req.given_args("connectionStatus", &["showPrivileges"]) {
        match arg.name() {
            "showPrivileges" => privileges = arg.boolish()?,
            _ => return Err(arg.unknown()),
        }
    }
    let mut r = Reply::new();
    r.body.doc("authInfo", |d| {
        d.array("authenticatedUsers", |_| {});
        d.array("authenticatedUserRoles", |_| {});
        if privileges {
            d.array("authenticatedUserPrivileges", |_| {});
        }
    });
    Ok(r)
}
