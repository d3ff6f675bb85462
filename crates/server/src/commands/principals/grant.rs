//! `grantRolesToUser`, `revokeRolesFromUser`, `grantRolesToRole`, `revokeRolesFromRole`, `grantPrivilegesToRole` and `revokePrivilegesFromRole`.

use super::role::{check_reach, privileges};
use super::{check_there, first_name, role_names};
use crate::commands::prelude::*;
use pando_audit::Event;
use pando_auth::UserName;
use pando_auth::roles::{Role, RoleName};
use pando_request::settings::roles::some_privileges;
use pando_request::settings::users::some_roles;
use pando_request::{
    GrantPrivilegesToRoleArgs, GrantRolesToRoleArgs, GrantRolesToUserArgs, RevokePrivilegesFromRoleArgs,
    RevokeRolesFromRoleArgs, RevokeRolesFromUserArgs,
};
use std::collections::BTreeSet;

pub(in crate::commands) async fn roles_to_user(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let args = GrantRolesToUserArgs::parse(&req)?;
    let event = Event::grant_roles_to_user;
    change_roles_of_user(server, ctx, &req, args.roles, event, |has, named| has.extend(named)).await
}

pub(in crate::commands) async fn roles_from_user(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let args = RevokeRolesFromUserArgs::parse(&req)?;
    let event = Event::revoke_roles_from_user;
    let change = |has: &mut BTreeSet<RoleName>, named: BTreeSet<RoleName>| has.retain(|r| !named.contains(r));
    change_roles_of_user(server, ctx, &req, args.roles, event, change).await
}

async fn change_roles_of_user(
    server: &Server,
    ctx: &OpCtx,
    req: &Request<'_>,
    list: &RawDoc,
    event: impl FnOnce(&UserName, &BTreeSet<RoleName>) -> Event,
    change: impl Fn(&mut BTreeSet<RoleName>, BTreeSet<RoleName>) + Send + Sync,
) -> Result<Reply> {
    let name = UserName::new(first_name(req)?, req.db);
    let named = role_names(&some_roles(req, req.name, list)?);
    ctx.arguments_read()?;
    let unknown = || {
        let text = format!("Could not find user \"{}\" for db \"{}\"", name.user, name.db);
        Error::new(ErrorCode::UserNotFound, text)
    };
    if server.principals.user(&name)?.is_none() {
        return Err(unknown());
    }
    check_there(&server.principals.roles()?, &named)?;
    server.upkeep.admission.before_write(ctx).await?;
    server
        .principals
        .change_user(
            ctx,
            &name,
            || event(&name, &named),
            |old| {
                let mut user = old.ok_or_else(unknown)?;
                change(&mut user.roles, named.clone());
                Ok(Some(user))
            },
        )
        .await?;
    Ok(Reply::new())
}

pub(in crate::commands) async fn roles_to_role(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let args = GrantRolesToRoleArgs::parse(&req)?;
    let name = RoleName::new(first_name(&req)?, req.db);
    let named = role_names(&some_roles(&req, req.name, args.roles)?);
    ctx.arguments_read()?;
    check_not_builtin(&name)?;
    let roles = server.principals.roles()?;
    roles.get(&name).ok_or_else(|| not_found(&name))?;
    roles.check_inclusion(&name, &named)?;
    let event = || Event::grant_roles_to_role(&name, &named);
    change_role(server, ctx, &name, event, |role| role.roles.extend(named.clone())).await
}

pub(in crate::commands) async fn roles_from_role(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let args = RevokeRolesFromRoleArgs::parse(&req)?;
    let name = RoleName::new(first_name(&req)?, req.db);
    let named = role_names(&some_roles(&req, req.name, args.roles)?);
    ctx.arguments_read()?;
    check_not_builtin(&name)?;
    let event = || Event::revoke_roles_from_role(&name, &named);
    change_role(server, ctx, &name, event, |role| role.roles.retain(|r| !named.contains(r))).await
}

pub(in crate::commands) async fn privileges_to_role(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let args = GrantPrivilegesToRoleArgs::parse(&req)?;
    let name = RoleName::new(first_name(&req)?, req.db);
    let granted = privileges(some_privileges(req.name, args.privileges)?)?;
    ctx.arguments_read()?;
    check_not_builtin(&name)?;
    check_reach(&name, &granted)?;
    let event = || Event::grant_privileges_to_role(&name, &granted);
    change_role(server, ctx, &name, event, |role| role.privileges.allow_all(&granted)).await
}

pub(in crate::commands) async fn privileges_from_role(
    server: &Server,
    ctx: &OpCtx,
    req: Request<'_>,
) -> Result<Reply> {
    let args = RevokePrivilegesFromRoleArgs::parse(&req)?;
    let name = RoleName::new(first_name(&req)?, req.db);
    let revoked = privileges(some_privileges(req.name, args.privileges)?)?;
    ctx.arguments_read()?;
    check_not_builtin(&name)?;
    let event = || Event::revoke_privileges_from_role(&name, &revoked);
    change_role(server, ctx, &name, event, |role| {
        revoked.iter().for_each(|(on, actions)| role.privileges.withdraw(on, actions));
    })
    .await
}

fn check_not_builtin(name: &RoleName) -> Result<()> {
    match name.is_builtin() {
        true => Err(Error::bad_value(format!("{name} is a built-in role and cannot be modified"))),
        false => Ok(()),
    }
}

fn not_found(name: &RoleName) -> Error {
    Error::new(ErrorCode::RoleNotFound, format!("Role {name} not found"))
}

async fn change_role(
    server: &Server,
    ctx: &OpCtx,
    name: &RoleName,
    event: impl FnOnce() -> Event,
    change: impl Fn(&mut Role) + Send + Sync,
) -> Result<Reply> {
    server.upkeep.admission.before_write(ctx).await?;
    server
        .principals
        .change_role(ctx, name, event, |old| {
            let mut role = old.ok_or_else(|| not_found(name))?;
            change(&mut role);
            Ok(Some(role))
        })
        .await?;
    Ok(Reply::new())
}
