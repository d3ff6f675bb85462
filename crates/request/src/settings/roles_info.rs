//! The arguments of `rolesInfo`.

use super::principals::{Principal, ROLE, means_all, named};
use crate::declare::kinds::SafeBool;
use crate::declare::{Kind, arguments};
use pando_base::{Error, Result};
use pando_bson::shape::{Null, Shape};
use pando_bson::{DocBuilder, Value};
use pando_command::Request;

arguments! {
    /// What `rolesInfo` asks for. Its first element says which ([`Roles`]).
    pub struct RolesInfoArgs of "rolesInfo" as "rolesInfo", refusing {
        "showPrivileges" privileges: optional Privileges,
        "showBuiltinRoles" built_in: optional SafeBool,
        "showAuthenticationRestrictions" restrictions: optional SafeBool,
    }
}

/// Which roles `rolesInfo` is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Roles<'a> {
    OfDatabase,
    Named(Vec<Principal<'a>>),
}

impl<'a> Roles<'a> {
    pub fn parse(req: &Request<'a>) -> Result<Roles<'a>> {
        match req.first().value() {
            v if means_all(&v) => Ok(Roles::OfDatabase),
            v => named(&ROLE, req.db, v).map(Roles::Named),
        }
    }
}

/// How privileges are to be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShowPrivileges {
    No,
    WithEachRole,
    /// Those of all roles together, in the form that a user has them.
    AsUserFragment,
}

const AS_FRAGMENT: &str = "asUserFragment";

/// `showPrivileges` of `rolesInfo`.
#[derive(Debug)]
pub struct Privileges;
impl Kind for Privileges {
    type Of<'a> = ShowPrivileges;
    const SHAPE: Shape =
        Shape::Checked { like: &[Shape::SafeBool, Shape::Word(&[AS_FRAGMENT])], check: check_privileges };
    const NULL: Null = Null::Value;
    fn read(v: Value<'_>) -> Option<ShowPrivileges> {
        match v {
            Value::String(AS_FRAGMENT) => Some(ShowPrivileges::AsUserFragment),
            v if !matches!(v, Value::Boolean(_)) && !v.is_number() => None,
            v if v.is_truthy() => Some(ShowPrivileges::WithEachRole),
            _ => Some(ShowPrivileges::No),
        }
    }
    fn spell(v: &ShowPrivileges, name: &str, b: &mut DocBuilder) {
        match v {
            ShowPrivileges::AsUserFragment => b.str(name, AS_FRAGMENT),
            v => b.bool(name, *v == ShowPrivileges::WithEachRole),
        };
    }
}

fn check_privileges(_: &str, v: &Value<'_>) -> Result<()> {
    match Privileges::read(*v) {
        Some(_) => Ok(()),
        None => Err(Error::bad_value(format!(
            "Failed to parse 'showPrivileges'. 'showPrivileges' should either be a boolean or the string \
             'asUserFragment', given: showPrivileges: {v}"
        ))),
    }
}
