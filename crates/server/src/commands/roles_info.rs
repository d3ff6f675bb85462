//! `rolesInfo`: the built-in roles and what they allow. Others cannot be created yet.

use super::prelude::*;
use pando_auth::roles::{RoleName, builtin};
use pando_auth::{Privileges, roles};
use pando_request::RolesInfoArgs;
use pando_request::settings::principals::Principal;
use pando_request::settings::roles_info::{Roles, ShowPrivileges};

pub(super) async fn run(_: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = RolesInfoArgs::parse(&req)?;
    let roles = Roles::parse(&req)?;
    ctx.arguments_read()?;
    let show = args.privileges.unwrap_or(ShowPrivileges::No);
    let restrictions = args.restrictions == Some(true);
    let mut r = Reply::new();
    match roles {
        Roles::OfDatabase if show == ShowPrivileges::AsUserFragment => {
            let text = "Cannot get user fragment for all roles in a database";
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        Roles::Named(names) if show == ShowPrivileges::AsUserFragment => {
            r.body.doc("userFragment", |d| fragment(d, &names, restrictions));
        }
        Roles::OfDatabase => {
            let all = builtin::OF_EVERY_DATABASE.iter().chain(builtin::OF_ADMIN);
            let names = all.filter(|_| args.built_in == Some(true)).map(|name| RoleName::new(*name, req.db));
            append_roles(&mut r, names, show, restrictions)
        }
        Roles::Named(names) => {
            append_roles(&mut r, names.iter().map(|n| RoleName::new(n.name, n.db)), show, restrictions)
        }
    }
    Ok(r)
}

/// Those of the names that are built in.
fn append_roles(
    r: &mut Reply,
    names: impl Iterator<Item = RoleName>,
    show: ShowPrivileges,
    restrictions: bool,
) {
    r.body.array("roles", |a| {
        for (name, privileges) in names.filter_map(|n| builtin::privileges(&n).map(|p| (n, p))) {
            a.doc(|d| append_role(d, &name, &privileges, show, restrictions));
        }
    });
}

/// A built-in role: it inherits nothing, and nobody is restricted in using it.
fn append_role(
    d: &mut DocBuilder,
    name: &RoleName,
    privileges: &Privileges,
    show: ShowPrivileges,
    restrictions: bool,
) {
    let shown = show == ShowPrivileges::WithEachRole;
    d.str("db", &name.db);
    d.str("role", &name.role);
    d.array("roles", |_| {});
    if shown {
        append(d, "privileges", privileges);
    }
    if restrictions {
        d.array("authenticationRestrictions", |_| {});
    }
    d.array("inheritedRoles", |_| {});
    if shown {
        append(d, "inheritedPrivileges", privileges);
    }
    if restrictions {
        d.array("inheritedAuthenticationRestrictions", |_| {});
    }
    d.bool("isBuiltin", true);
}

/// What a user with all of these roles has. Roles that are not there are listed, too.
fn fragment(d: &mut DocBuilder, asked: &[Principal<'_>], restrictions: bool) {
    let names: Vec<RoleName> = asked.iter().map(|n| RoleName::new(n.name, n.db)).collect();
    for field in ["roles", "inheritedRoles"] {
        d.array(field, |a| {
            for name in &names {
                a.doc(|d| {
                    d.str("role", &name.role);
                    d.str("db", &name.db);
                });
            }
        });
    }
    append(d, "inheritedPrivileges", &roles::Roles::default().resolve(&names).privileges);
    if restrictions {
        d.array("inheritedAuthenticationRestrictions", |_| {});
    }
}

fn append(d: &mut DocBuilder, field: &str, privileges: &Privileges) {
    d.array(field, |a| {
        for privilege in privileges.documents() {
            a.value(Value::Document(&privilege.to_raw()));
        }
    });
}
