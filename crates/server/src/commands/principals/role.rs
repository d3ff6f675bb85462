//! `createRole` and `updateRole`.

use super::{first_name, restrictions, role_names};
use crate::commands::prelude::*;
use pando_audit::Event;
use pando_auth::roles::{Role, RoleName};
use pando_auth::{Privileges, Resource};
use pando_bson::Document;
use pando_request::settings::users::roles;
use pando_request::{CreateRoleArgs, UpdateRoleArgs};

pub(in crate::commands) async fn create(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = CreateRoleArgs::parse(&req)?;
    let name = RoleName::new(first_name(&req)?, req.db);
    let included = role_names(&roles(&req, args.roles)?);
    ctx.arguments_read()?;
    if name.role.is_empty() {
        return Err(Error::bad_value("Role name must be non-empty"));
    }
    if matches!(name.db.as_str(), "local" | "$external") {
        return Err(Error::bad_value(format!("Cannot create roles in the {} database", name.db)));
    }
    if name.is_builtin() {
        return Err(Error::bad_value("Cannot create roles with the same name as a built-in role"));
    }
    let restrictions = restrictions(args.restrictions)?.unwrap_or_default();
    let privileges = privileges(args.privileges)?;
    server.principals.roles()?.check_inclusion(&name, &included)?;
    check_reach(&name, &privileges)?;
    server.upkeep.admission.before_write(ctx).await?;
    let role = Role { privileges, roles: included, restrictions };
    let event = || Event::create_role(&name, &role.roles, &role.privileges);
    server
        .principals
        .change_role(ctx, &name, event, |old| match old {
            Some(_) => Err(Error::location(51002, format!("Role \"{name}\" already exists"))),
            None => Ok(Some(role.clone())),
        })
        .await?;
    Ok(Reply::new())
}

pub(in crate::commands) async fn update(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = UpdateRoleArgs::parse(&req)?;
    let name = RoleName::new(first_name(&req)?, req.db);
    let included = args.roles.map(|list| roles(&req, list)).transpose()?.map(|named| role_names(&named));
    ctx.arguments_read()?;
    if args.privileges.is_none() && included.is_none() && args.restrictions.is_none() {
        return Err(Error::bad_value("Must specify at least one field to update in updateRole"));
    }
    let restrictions = restrictions(args.restrictions)?;
    let privileges = args.privileges.map(privileges).transpose()?;
    let all = server.principals.roles()?;
    if let Some(included) = &included {
        all.check_inclusion(&name, included)?;
    }
    if let Some(privileges) = &privileges {
        check_reach(&name, privileges)?;
    }
    server.upkeep.admission.before_write(ctx).await?;
    let event = || Event::update_role(&name, included.as_ref(), privileges.as_ref());
    server
        .principals
        .change_role(ctx, &name, event, |old| {
            let text = format!("Role {name} not found");
            let mut role = old.ok_or_else(|| Error::new(ErrorCode::RoleNotFound, text))?;
            role.privileges = privileges.clone().unwrap_or(role.privileges);
            role.roles = included.clone().unwrap_or(role.roles);
            role.restrictions = restrictions.clone().unwrap_or(role.restrictions);
            Ok(Some(role))
        })
        .await?;
    Ok(Reply::new())
}

/// `[{resource, actions}, ...]`
pub(super) fn privileges(list: &RawDoc) -> Result<Privileges> {
    let mut out = Privileges::new();
    for each in list.iter().filter_map(|e| e.value().as_doc()) {
        out.parse_into(&Document::from(each))?;
    }
    Ok(out)
}

/// A role of another database than `admin` allows nothing outside of its own.
pub(super) fn check_reach(of: &RoleName, privileges: &Privileges) -> Result<()> {
    let within = |on: &Resource| match on {
        Resource::Collection { db, .. } | Resource::Buckets { db, .. } => *db == of.db,
        Resource::Any | Resource::Cluster => false,
    };
    if of.db == "admin" || privileges.iter().all(|(on, _)| within(on)) {
        return Ok(());
    }
    let text = format!(
        "Roles on the '{}' database cannot be granted privileges that target other databases or the cluster",
        of.db
    );
    Err(Error::new(ErrorCode::InvalidRoleModification, text))
}
