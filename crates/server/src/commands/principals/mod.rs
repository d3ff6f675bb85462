//! Commands about users and roles.

pub(super) mod drop;
pub(super) mod grant;
mod keeper;
pub(super) mod merge;
pub(super) mod role;
pub(super) mod roles_info;
pub(super) mod user;
pub(super) mod user_cache_generation;
pub(super) mod users_info;

use super::prelude::*;
use pando_auth::Restrictions;
use pando_auth::roles::{RoleName, Roles};
use pando_bson::Document;
use pando_request::settings::principals::Principal;
use pando_request::settings::users::texts;
use std::collections::BTreeSet;

/// The name that the command's own element has.
fn first_name<'a>(req: &Request<'a>) -> Result<&'a str> {
    pando_request::settings::drop_users_and_roles::name(req, req.name)
}

/// Roles that a command names.
fn role_names(named: &[Principal<'_>]) -> BTreeSet<RoleName> {
    named.iter().map(|n| RoleName::new(n.name, n.db)).collect()
}

/// 31 for one that there is not.
fn check_there(roles: &Roles, named: &BTreeSet<RoleName>) -> Result<()> {
    match named.iter().find(|name| !roles.exists(name)) {
        Some(name) => Err(not_found(name)),
        None => Ok(()),
    }
}

fn not_found(name: &RoleName) -> Error {
    Error::new(ErrorCode::RoleNotFound, format!("Could not find role: {name}"))
}

/// `authenticationRestrictions` of a command.
fn restrictions(list: Option<&RawDoc>) -> Result<Option<Restrictions>> {
    let Some(list) = list else { return Ok(None) };
    let mut out = Restrictions::default();
    for each in list.iter().filter_map(|e| e.value().as_doc()) {
        let part = |name: &str| each.get(name).and_then(|v| v.as_array()).map(texts);
        out.require(part("clientSource").as_deref(), part("serverAddress").as_deref())?;
    }
    Ok(Some(out))
}

/// Takes a field over, if it is there.
fn keep(d: &mut Document, from: &Document, name: &str) {
    if let Some(v) = from.get(name) {
        d.push(name, v.clone());
    }
}
