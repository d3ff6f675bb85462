//! `dropUser`, `dropRole` and their kind on a server where no user and no role can be created yet: nobody is found.

use super::prelude::*;
use pando_auth::roles::RoleName;
use pando_request::settings::drop_users_and_roles::name;
use pando_request::{DropAllRolesArgs, DropAllUsersArgs, DropRoleArgs, DropUserArgs};

pub(super) async fn drop_user(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    DropUserArgs::parse(&req)?;
    let text = format!("User '{}@{}' not found", name(&req, "dropUser")?, req.db);
    Err(Error::new(ErrorCode::UserNotFound, text))
}

pub(super) async fn drop_role(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    DropRoleArgs::parse(&req)?;
    let name = name(&req, "dropRole")?;
    if RoleName::new(name, req.db).is_builtin() {
        let text = format!("{name}@{} is a built-in role and cannot be modified", req.db);
        return Err(Error::bad_value(text));
    }
    Err(Error::new(ErrorCode::RoleNotFound, format!("Could not find role: {name}@{}", req.db)))
}

pub(super) async fn drop_all_users(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    DropAllUsersArgs::parse(&req)?;
    Ok(none_of_them())
}
pub(super) async fn drop_all_roles(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    DropAllRolesArgs::parse(&req)?;
    Ok(none_of_them())
}

fn none_of_them() -> Reply {
    let mut r = Reply::new();
    r.body.i32("n", 0);
    r
}
