//! `createUser`, `updateUser`, and roles that are granted to users and taken from them.

use super::principals::{Principal, ROLE, named};
use crate::declare::arguments;
use crate::declare::kinds::{Array, Bool, Object, Text, kind};
use pando_base::{Error, Result};
use pando_bson::shape::{Field, Null, Shape};
use pando_bson::{RawDoc, Value};
use pando_command::Request;

const TEXTS: Shape = Shape::List(&Shape::String);
const RESTRICTION: Shape =
    Shape::Fields(&[Field::optional("clientSource", TEXTS), Field::optional("serverAddress", TEXTS)]);

kind! {
    /// Names of mechanisms.
    pub Mechanisms like Array { SHAPE: TEXTS }
}
kind! {
    /// From where one may log in.
    pub RestrictionList like Array { SHAPE: Shape::List(&RESTRICTION) }
}

kind! {
    /// Roles: names, or names with their databases.
    pub RoleList like Array {
        SHAPE: Shape::Checked { like: &[Shape::List(&Shape::Any)], check: check_roles },
        NULL: Null::Value,
    }
}

fn check_roles(path: &str, v: &Value<'_>) -> Result<()> {
    Shape::List(&Shape::Any).check(path, v)?;
    v.as_array().map_or(Ok(()), |list| named_roles("", list).map(drop))
}

arguments! {
    /// What `createUser` asks for beside the name.
    pub struct CreateUserArgs of "createUser" as "createUser", refusing {
        "pwd" password: optional Text,
        "customData" custom_data: optional Object,
        "roles" roles: required RoleList,
        "digestPassword" digest: optional Bool,
        "authenticationRestrictions" restrictions: optional RestrictionList,
        "mechanisms" mechanisms: optional Mechanisms,
    }
}
arguments! {
    /// What `updateUser` changes.
    pub struct UpdateUserArgs of "updateUser" as "updateUser", refusing {
        "pwd" password: optional Text,
        "customData" custom_data: optional Object,
        "roles" roles: optional RoleList,
        "digestPassword" digest: optional Bool,
        "authenticationRestrictions" restrictions: optional RestrictionList,
        "mechanisms" mechanisms: optional Mechanisms,
    }
}
arguments! {
    /// What `grantRolesToUser` grants.
    pub struct GrantRolesToUserArgs of "grantRolesToUser" as "grantRolesToUser", refusing {
        "roles" roles: required RoleList,
    }
}
arguments! {
    /// What `revokeRolesFromUser` takes away.
    pub struct RevokeRolesFromUserArgs of "revokeRolesFromUser" as "revokeRolesFromUser", refusing {
        "roles" roles: required RoleList,
    }
}

/// Roles in a list: by the name alone, then of the command's database, or with a database.
pub fn roles<'a>(req: &Request<'a>, list: &'a RawDoc) -> Result<Vec<Principal<'a>>> {
    named_roles(req.db, list)
}

fn named_roles<'a>(db: &'a str, list: &'a RawDoc) -> Result<Vec<Principal<'a>>> {
    if list.iter().any(|e| !matches!(e.value(), Value::String(_) | Value::Document(_))) {
        return Err(Error::bad_value("Role name must be either a document or string"));
    }
    named(&ROLE, db, Value::Array(list))
}

/// The same, of which there has to be one.
pub fn some_roles<'a>(req: &Request<'a>, command: &str, list: &'a RawDoc) -> Result<Vec<Principal<'a>>> {
    if list.is_empty() {
        let text = format!("{command} command requires a non-empty \"roles\" array");
        return Err(Error::bad_value(text));
    }
    roles(req, list)
}

/// The texts of a list of them.
pub fn texts(list: &RawDoc) -> Vec<&str> {
    list.iter().filter_map(|e| e.value().as_str()).collect()
}
