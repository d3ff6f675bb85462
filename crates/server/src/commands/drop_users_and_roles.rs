//! `dropUser`, `dropRole` and their kind on a server where no user and no role can be created yet: nobody is found.

use super::prelude::*;

fn name<'a>(req: &Request<'a>, command: &'static str) -> Result<&'a str> {
    req.check(command, &[])?;
    match req.first().value() {
        Value::String(name) => Ok(name),
        Value::Null | Value::Undefined => Err(pando_command::request::missing(command, command)),
        v => Err(pando_command::request::wrong_type(command, command, &v, &["string"])),
    }
}

pub(super) async fn drop_user(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let text = format!("User '{}@{}' not found", name(&req, "dropUser")?, req.db);
    Err(Error::new(ErrorCode::UserNotFound, text))
}

pub(super) async fn drop_role(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let name = name(&req, "dropRole")?;
    if super::roles_info::exists(name, req.db) {
        let text = format!("{name}@{} is a built-in role and cannot be modified", req.db);
        return Err(Error::bad_value(text));
    }
    Err(Error::new(ErrorCode::RoleNotFound, format!("Could not find role: {name}@{}", req.db)))
}

pub(super) async fn drop_all_users(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    none_of_them(&req, "dropAllUsersFromDatabase")
}
pub(super) async fn drop_all_roles(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    none_of_them(&req, "dropAllRolesFromDatabase")
}

fn none_of_them(req: &Request<'_>, command: &'static str) -> Result<Reply> {
    req.check(command, &[])?;
    let mut r = Reply::new();
    r.body.i32("n", 0);
    Ok(r)
}
