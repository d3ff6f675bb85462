//! `createRole`, `updateRole`, and what is granted to roles and taken from them.

use super::users::{RestrictionList, RoleList};
use crate::declare::arguments;
use crate::declare::kinds::{Array, kind};
use pando_auth::Privileges;
use pando_base::{Error, Result};
use pando_bson::shape::{Null, Shape};
use pando_bson::{Document, RawDoc, Value};

kind! {
    /// `[{resource, actions}, ...]`
    pub PrivilegeList like Array {
        SHAPE: Shape::Checked { like: &[Shape::List(&Shape::Object)], check: check_privileges },
        NULL: Null::Value,
    }
}

fn check_privileges(path: &str, v: &Value<'_>) -> Result<()> {
    Shape::List(&Shape::Object).check(path, v)?;
    let each = v.as_array().into_iter().flatten().filter_map(|e| e.value().as_doc());
    each.map(Document::from).try_for_each(|d| Privileges::new().parse_into(&d).map(drop))
}

arguments! {
    /// What `createRole` asks for beside the name.
    pub struct CreateRoleArgs of "createRole" as "createRole", refusing {
        "privileges" privileges: required PrivilegeList,
        "roles" roles: required RoleList,
        "authenticationRestrictions" restrictions: optional RestrictionList,
    }
}
arguments! {
    /// What `updateRole` changes.
    pub struct UpdateRoleArgs of "updateRole" as "updateRole", refusing {
        "privileges" privileges: optional PrivilegeList,
        "roles" roles: optional RoleList,
        "authenticationRestrictions" restrictions: optional RestrictionList,
    }
}
arguments! {
    /// What `grantRolesToRole` grants.
    pub struct GrantRolesToRoleArgs of "grantRolesToRole" as "grantRolesToRole", refusing {
        "roles" roles: required RoleList,
    }
}
arguments! {
    /// What `revokeRolesFromRole` takes away.
    pub struct RevokeRolesFromRoleArgs of "revokeRolesFromRole" as "revokeRolesFromRole", refusing {
        "roles" roles: required RoleList,
    }
}
arguments! {
    /// What `grantPrivilegesToRole` grants.
    pub struct GrantPrivilegesToRoleArgs of "grantPrivilegesToRole" as "grantPrivilegesToRole", refusing {
        "privileges" privileges: required PrivilegeList,
    }
}
arguments! {
    /// What `revokePrivilegesFromRole` takes away.
    pub struct RevokePrivilegesFromRoleArgs of "revokePrivilegesFromRole" as "revokePrivilegesFromRole", refusing {
        "privileges" privileges: required PrivilegeList,
    }
}

/// The privileges of a command that needs one.
pub fn some_privileges<'a>(command: &str, list: &'a RawDoc) -> Result<&'a RawDoc> {
    if list.is_empty() {
        let text = format!("{command} command requires a non-empty \"privileges\" array");
        return Err(Error::bad_value(text));
    }
    Ok(list)
}
