//! `createRole`, `updateRole`, and what is granted to roles and taken from them.

use super::users::RestrictionList;
use crate::declare::arguments;
use crate::declare::kinds::{Array, kind};
use pando_base::{Error, Result};
use pando_bson::RawDoc;
use pando_bson::shape::Shape;

kind! {
    /// `[{resource, actions}, ...]`
    pub PrivilegeList like Array { SHAPE: Shape::List(&Shape::Object) }
}

arguments! {
    /// What `createRole` asks for beside the name.
    pub struct CreateRoleArgs of "createRole" as "createRole", refusing {
        "privileges" privileges: required PrivilegeList,
        "roles" roles: required Array,
        "authenticationRestrictions" restrictions: optional RestrictionList,
    }
}
arguments! {
    /// What `updateRole` changes.
    pub struct UpdateRoleArgs of "updateRole" as "updateRole", refusing {
        "privileges" privileges: optional PrivilegeList,
        "roles" roles: optional Array,
        "authenticationRestrictions" restrictions: optional RestrictionList,
    }
}
arguments! {
    /// What `grantRolesToRole` grants.
    pub struct GrantRolesToRoleArgs of "grantRolesToRole" as "grantRolesToRole", refusing {
        "roles" roles: required Array,
    }
}
arguments! {
    /// What `revokeRolesFromRole` takes away.
    pub struct RevokeRolesFromRoleArgs of "revokeRolesFromRole" as "revokeRolesFromRole", refusing {
        "roles" roles: required Array,
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
