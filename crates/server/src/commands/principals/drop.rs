//! `dropUser`, `dropRole`, and all of a database.

use super::{first_name, not_found};
use crate::commands::prelude::*;
use pando_auth::UserName;
use pando_auth::roles::RoleName;
use pando_request::{DropAllRolesArgs, DropAllUsersArgs, DropRoleArgs, DropUserArgs};

pub(in crate::commands) async fn user(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    DropUserArgs::parse(&req)?;
    let name = UserName::new(first_name(&req)?, req.db);
    server.upkeep.admission.before_write(ctx).await?;
    match server.principals.drop_user(ctx, &name).await? {
        true => Ok(Reply::new()),
        false => Err(Error::new(ErrorCode::UserNotFound, format!("User '{name}' not found"))),
    }
}

pub(in crate::commands) async fn role(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    DropRoleArgs::parse(&req)?;
    let name = RoleName::new(first_name(&req)?, req.db);
    if name.is_builtin() {
        return Err(Error::bad_value(format!("{name} is a built-in role and cannot be modified")));
    }
    server.upkeep.admission.before_write(ctx).await?;
    match server.principals.drop_role(ctx, &name).await? {
        true => Ok(Reply::new()),
        false => Err(not_found(&name)),
    }
}

pub(in crate::commands) async fn all_users(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    DropAllUsersArgs::parse(&req)?;
    server.upkeep.admission.before_write(ctx).await?;
    Ok(count(server.principals.drop_all_users(ctx, req.db).await?))
}

pub(in crate::commands) async fn all_roles(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    DropAllRolesArgs::parse(&req)?;
    server.upkeep.admission.before_write(ctx).await?;
    Ok(count(server.principals.drop_all_roles(ctx, req.db).await?))
}

fn count(n: i32) -> Reply {
    let mut r = Reply::new();
    r.body.i32("n", n);
    r
}
