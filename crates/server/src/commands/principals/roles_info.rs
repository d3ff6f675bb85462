//! `rolesInfo`: the roles, and what they allow.

use super::keep;
use super::users_info::append_inherited;
use crate::commands::prelude::*;
use pando_auth::roles::{Role, RoleName, Roles as AllRoles, builtin};
use pando_bson::{Bson, Document, doc};
use pando_request::RolesInfoArgs;
use pando_request::settings::roles_info::{Roles, ShowPrivileges};

pub(in crate::commands) async fn run(server: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = RolesInfoArgs::parse(&req)?;
    let asked = Roles::parse(&req)?;
    ctx.arguments_read()?;
    let show = args.privileges.unwrap_or(ShowPrivileges::No);
    let restrictions = args.restrictions == Some(true);
    let all = server.principals.roles()?;
    let mut r = Reply::new();
    let names: Vec<RoleName> = match &asked {
        Roles::OfDatabase if show == ShowPrivileges::AsUserFragment => {
            let text = "Cannot get user fragment for all roles in a database";
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        Roles::OfDatabase => {
            let built_in = builtin::OF_EVERY_DATABASE.iter().chain(builtin::OF_ADMIN);
            let built_in = built_in.filter(|_| args.built_in == Some(true));
            let defined = all.iter().map(|(name, _)| name).filter(|name| name.db == req.db).cloned();
            defined.chain(built_in.map(|name| RoleName::new(*name, req.db))).collect()
        }
        Roles::Named(names) => names.iter().map(|n| RoleName::new(n.name, n.db)).collect(),
    };
    if show == ShowPrivileges::AsUserFragment {
        r.body.value("userFragment", Value::Document(&fragment(&all, &names, restrictions).to_raw()));
        return Ok(r);
    }
    r.body.array("roles", |a| {
        for role in names.iter().filter_map(|name| shown(&all, name, show, restrictions)) {
            a.value(Value::Document(&role.to_raw()));
        }
    });
    Ok(r)
}

/// A role as it is shown; `None` for one that there is not. A built-in role inherits nothing, and nobody is restricted in using it.
fn shown(all: &AllRoles, name: &RoleName, show: ShowPrivileges, restrictions: bool) -> Option<Document> {
    let (role, is_builtin) = match all.get(name) {
        Some(role) => (role.clone(), false),
        None => (Role { privileges: builtin::privileges(name)?, ..Role::default() }, true),
    };
    let stored = role.document(name);
    let mut d = doc! {};
    if is_builtin {
        d.push("db", name.db.as_str());
        d.push("role", name.role.as_str());
    } else {
        ["_id", "role", "db"].iter().for_each(|field| keep(&mut d, &stored, field));
    }
    let privileges = show == ShowPrivileges::WithEachRole;
    if privileges && !is_builtin {
        keep(&mut d, &stored, "privileges");
    }
    keep(&mut d, &stored, "roles");
    if privileges && is_builtin {
        keep(&mut d, &stored, "privileges");
    }
    if restrictions {
        // In a list more than those of a user, as MongoDB shows them.
        let own = role.restrictions.documents().into_iter().map(Bson::from).collect::<Vec<_>>();
        let own = if own.is_empty() { Vec::new() } else { vec![Bson::Array(own)] };
        d.push("authenticationRestrictions", Bson::Array(own));
    }
    if !is_builtin {
        d.push("isBuiltin", false);
    }
    let mut inherited = all.resolve(&role.roles);
    inherited.privileges.allow_all(&role.privileges);
    inherited.restrictions.extend((!role.restrictions.is_empty()).then(|| role.restrictions.clone()));
    let mut told = doc! {};
    append_inherited(&mut told, &inherited);
    keep(&mut d, &told, "inheritedRoles");
    if privileges {
        keep(&mut d, &told, "inheritedPrivileges");
    }
    if restrictions {
        keep(&mut d, &told, "inheritedAuthenticationRestrictions");
    }
    if is_builtin {
        d.push("isBuiltin", true);
    }
    Some(d)
}

/// What a user with all of these roles has. Roles that are not there are listed, too.
fn fragment(all: &AllRoles, names: &[RoleName], restrictions: bool) -> Document {
    let mut resolved = all.resolve(names);
    resolved.roles.extend(names.iter().cloned());
    let mut told = doc! {};
    append_inherited(&mut told, &resolved);
    let mut d = doc! { "roles": Bson::Array(names.iter().map(RoleName::document).map(Bson::from).collect()) };
    keep(&mut d, &told, "inheritedRoles");
    keep(&mut d, &told, "inheritedPrivileges");
    if restrictions {
        keep(&mut d, &told, "inheritedAuthenticationRestrictions");
    }
    d
}
