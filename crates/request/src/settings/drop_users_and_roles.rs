//! `dropUser`, `dropRole` and their kind ask for nothing beside what they drop.

use crate::declare::arguments;
use pando_base::Result;
use pando_bson::Value;
use pando_command::Request;
use pando_command::request::{missing, wrong_type};

arguments! {
    /// `dropUser` has no arguments beside the user's name.
    pub struct DropUserArgs of "dropUser" as "dropUser", refusing {}
}
arguments! {
    /// `dropRole` has no arguments beside the role's name.
    pub struct DropRoleArgs of "dropRole" as "dropRole", refusing {}
}
arguments! {
    /// `dropAllUsersFromDatabase` has no arguments.
    pub struct DropAllUsersArgs of "dropAllUsersFromDatabase" as "dropAllUsersFromDatabase", refusing {}
}
arguments! {
    /// `dropAllRolesFromDatabase` has no arguments.
    pub struct DropAllRolesArgs of "dropAllRolesFromDatabase" as "dropAllRolesFromDatabase", refusing {}
}

/// The user or role that the command's own element names.
pub fn name<'a>(req: &Request<'a>, owner: &str) -> Result<&'a str> {
    match req.first().value() {
        Value::String(name) => Ok(name),
        Value::Null | Value::Undefined => Err(missing(owner, owner)),
        v => Err(wrong_type(owner, owner, &v, &["string"])),
    }
}
