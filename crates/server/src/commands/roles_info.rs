//! `rolesInfo`: the built-in roles. Others cannot be created yet.

use super::prelude::*;
use super::users_info::check_name;

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

pub(super) async fn run(_: &Server, _: &OpCtx, req: Request<'_>) -> Result<Reply> {
    let mut built_in = false;
    for arg in req.args("rolesInfo") {
        match (arg.name(), arg.value()) {
            ("showBuiltinRoles", v) if !matches!(v, Value::Null | Value::Undefined) => {
                built_in = arg.boolish()?
            }
            ("showPrivileges", Value::String("asUserFragment")) => {
                return Err(Error::new(
                    ErrorCode::IllegalOperation,
                    "Cannot get user fragment for all roles in a database",
                ));
            }
            ("showPrivileges", v) if matches!(v, Value::Boolean(_)) || v.is_number() => {
                refuse_privileges(v.is_truthy())?;
            }
            ("showPrivileges", v) => {
                return Err(Error::bad_value(format!(
                    "Failed to parse 'showPrivileges'. 'showPrivileges' should either be a boolean or the string \
                     'asUserFragment', given: showPrivileges: {v}"
                )));
            }
            (_, Value::Null | Value::Undefined) => {}
            ("showAuthenticationRestrictions", _) => drop(arg.boolish()?),
            _ => return Err(arg.unknown()),
        }
    }
    let mut r = Reply::new();
    let mut found = Vec::new();
    match req.first().value() {
        v if v.is_number() && v.as_f64() == Some(1.0) => {
            let all = EVERYWHERE.iter().chain(ADMIN).filter(|role| built_in && exists(role, req.db));
            found.extend(all.map(|role| (*role, req.db)));
        }
        Value::Array(names) => {
            for e in names {
                found.extend(named(req.db, e.value())?);
            }
        }
        v => found.extend(named(req.db, v)?),
    }
    r.body.array("roles", |a| {
        for (role, db) in found {
            a.doc(|d| {
                d.str("db", db);
                d.str("role", role);
                d.array("roles", |_| {});
                d.array("inheritedRoles", |_| {});
                d.bool("isBuiltin", true);
            });
        }
    });
    Ok(r)
}

/// What a role may do is part of authorization, which is not built.
fn refuse_privileges(wanted: bool) -> Result<()> {
    if !wanted {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::CommandNotSupported,
        "privileges of roles are not supported by this server yet",
    ))
}

pub(super) fn exists(role: &str, db: &str) -> bool {
    EVERYWHERE.contains(&role) || (db == "admin" && ADMIN.contains(&role))
}

fn named<'a>(db: &'a str, v: Value<'a>) -> Result<Option<(&'a str, &'a str)>> {
    check_name("RoleName", "role", v)?;
    let (role, db) = match v {
        Value::Document(d) => (d.get("role").and_then(|v| v.as_str()), d.get("db").and_then(|v| v.as_str())),
        v => (v.as_str(), Some(db)),
    };
    Ok(role.zip(db).filter(|(role, db)| exists(role, db)))
}
