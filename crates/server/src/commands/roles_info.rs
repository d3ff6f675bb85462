//! `rolesInfo`: the built-in roles. Others cannot be created yet.

use super::prelude::*;
use pando_request::RolesInfoArgs;
use pando_request::settings::principals::Principal;
use pando_request::settings::roles_info::{Roles, ShowPrivileges};

/// Roles of every database.
const EVERYWHERE: &[&str] = &["dbAdmin", "dbOwner", "enableSharding", "read", "readWrite", "userAdmin"];
/// Roles of `admin` besides.
const ADMIN: &[&str] = &[
    "__queryableBackup",
    "__system",
    "backup",
    "clusterAdmin",
    "clusterManager",
    "clusterMonitor",
    "dbAdminAnyDatabase",
    "directShardOperations",
    "hostManager",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "restore",
    "root",
    "userAdminAnyDatabase",
];

pub(super) async fn run(_: &Server, ctx: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let args = RolesInfoArgs::parse(&req)?;
    let roles = Roles::parse(&req)?;
    ctx.arguments_read()?;
    let show = args.privileges.unwrap_or(ShowPrivileges::No);
    let found = match roles {
        Roles::OfDatabase if show == ShowPrivileges::AsUserFragment => {
            let text = "Cannot get user fragment for all roles in a database";
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        Roles::OfDatabase => {
            let all = EVERYWHERE.iter().chain(ADMIN).filter(|role| exists(role, req.db));
            all.filter(|_| args.built_in == Some(true)).map(|name| Principal { name, db: req.db }).collect()
        }
        Roles::Named(mut names) => {
            names.retain(|role| exists(role.name, role.db));
            names
        }
    };
    // What a role may do is part of authorization, which is not built.
    let wanted = match show {
        ShowPrivileges::No => false,
        ShowPrivileges::WithEachRole => !found.is_empty(),
        ShowPrivileges::AsUserFragment => true,
    };
    if wanted {
        let text = "privileges of roles are not supported by this server yet";
        return Err(Error::new(ErrorCode::CommandNotSupported, text));
    }
    let restrictions = args.restrictions == Some(true);
    let mut r = Reply::new();
    r.body.array("roles", |a| {
        for role in found {
            a.doc(|d| append(d, role, restrictions));
        }
    });
    Ok(r)
}

/// A built-in role: it inherits nothing, and nobody is restricted in using it.
fn append(d: &mut DocBuilder, role: Principal<'_>, restrictions: bool) {
    d.str("db", role.db);
    d.str("role", role.name);
    d.array("roles", |_| {});
    if restrictions {
        d.array("authenticationRestrictions", |_| {});
    }
    d.array("inheritedRoles", |_| {});
    if restrictions {
        d.array("inheritedAuthenticationRestrictions", |_| {});
    }
    d.bool("isBuiltin", true);
}

pub(super) fn exists(role: &str, db: &str) -> bool {
    EVERYWHERE.contains(&role) || (db == "admin" && ADMIN.contains(&role))
}
