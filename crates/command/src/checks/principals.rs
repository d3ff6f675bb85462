//! Users and roles: whoever grants something must be allowed to grant it where it belongs.

use super::text;
use crate::{Node, OpCtx, Request, has_unique_names};
use pando_auth::Action::{
    ChangeCustomData, ChangeOwnCustomData, ChangeOwnPassword, ChangePassword, CreateRole, CreateUser,
    DropRole, DropUser, Find, GrantRole, RevokeRole, SetAuthenticationRestriction, ViewRole, ViewUser,
};
use pando_auth::roles::RoleName;
use pando_auth::{Action, Authority, Target, UserName};
use pando_base::Result;
use pando_bson::{RawDoc, Value};

/// `action` in the database of each role that the list names.
fn may_for_roles(req: &Request<'_>, list: &str, who: &Authority, action: Action) -> bool {
    let roles = req.body.get(list).and_then(|v| v.as_array());
    roles.into_iter().flatten().all(|e| {
        if e.value().as_doc().is_some_and(|d| !has_unique_names(d)) {
            return who.may_everything();
        }
        let db = e.value().as_doc().and_then(|d| text(d, "db")).unwrap_or(req.db);
        who.may(Target::Database(db), &[action])
    })
}

/// `action` in the database of each resource that the privileges are on; in `admin` for those of no database.
fn may_for_privileges(req: &Request<'_>, who: &Authority, action: Action) -> bool {
    let privileges = req.body.get("privileges").and_then(|v| v.as_array());
    privileges.into_iter().flatten().all(|e| {
        let privilege = e.value().as_doc();
        let resource = privilege.and_then(|p| p.get("resource")).and_then(|r| r.as_doc());
        if [privilege, resource].into_iter().flatten().any(|d| !has_unique_names(d)) {
            return who.may_everything();
        }
        let db = resource.and_then(|r| text(r, "db")).filter(|db| !db.is_empty());
        match db {
            Some(db) => who.may(Target::Database(db), &[action]),
            None => who.may(Target::Database("admin"), &[action]),
        }
    })
}

/// From where somebody may log in is an action of its own.
fn may_restrict(req: &Request<'_>, who: &Authority) -> bool {
    let restricts = req.body.get("authenticationRestrictions").is_some();
    !restricts || who.may(Target::Database(req.db), &[SetAuthenticationRestriction])
}

pub fn create_user<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may(Target::Database(req.db), &[CreateUser])
        && may_for_roles(req, "roles", who, GrantRole)
        && may_restrict(req, who))
}

pub fn update_user<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let is_own = who.user().is_some_and(|u| u.db == req.db && req.first().value().as_str() == Some(&u.user));
    let on_own = |action, own_action| {
        who.may(Target::Database(req.db), &[action])
            || is_own && who.may(Target::Database(req.db), &[own_action])
    };
    let given = |name: &str| req.body.get(name).is_some();
    Ok((!given("pwd") || on_own(ChangePassword, ChangeOwnPassword))
        && (!given("customData") || on_own(ChangeCustomData, ChangeOwnCustomData))
        && (!given("roles")
            || who.may_on_all_normal(&[RevokeRole]) && may_for_roles(req, "roles", who, GrantRole))
        && may_restrict(req, who))
}

pub fn create_role<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may(Target::Database(req.db), &[CreateRole])
        && may_for_roles(req, "roles", who, GrantRole)
        && may_for_privileges(req, who, GrantRole)
        && may_restrict(req, who))
}

pub fn update_role<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(who.may_on_all_normal(&[RevokeRole])
        && may_for_roles(req, "roles", who, GrantRole)
        && may_for_privileges(req, who, GrantRole)
        && may_restrict(req, who))
}

pub fn grant_roles<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(may_for_roles(req, "roles", who, GrantRole))
}
pub fn revoke_roles<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(may_for_roles(req, "roles", who, RevokeRole))
}
pub fn grant_privileges<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(may_for_privileges(req, who, GrantRole))
}
pub fn revoke_privileges<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    Ok(may_for_privileges(req, who, RevokeRole))
}

/// To make and, with `drop`, to drop whatever the copies say, and to read these.
pub fn merge<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    let mut actions = vec![CreateUser, CreateRole, GrantRole, RevokeRole];
    if req.body.get("drop").is_some_and(|v| v.is_truthy()) {
        actions.extend([DropUser, DropRole]);
    }
    // Everywhere, whatever database's are merged: their roles may be of any.
    let everywhere = who.may_on_all_normal(&actions);
    let reads = ["tempUsersCollection", "tempRolesCollection"].into_iter().all(|name| {
        let place = text(req.body, name).and_then(|place| place.split_once('.'));
        place.is_none_or(|(db, coll)| who.may(Target::Collection(db, coll), &[Find]))
    });
    Ok(everywhere && reads)
}

/// What `usersInfo` and `rolesInfo` are asked about.
enum About<'a> {
    Database,
    Everything,
    These(Vec<(&'a str, &'a str)>),
}

fn about<'a>(req: &Request<'a>, field: &str) -> About<'a> {
    let one = |v: Value<'a>| -> Option<(&'a str, &'a str)> {
        match v {
            Value::String(name) => Some((name, req.db)),
            Value::Document(d) => Some((text(d, field)?, text(d, "db").unwrap_or(req.db))),
            _ => None,
        }
    };
    let all = |d: &RawDoc| d.get("forAllDBs").is_some_and(|v| v.is_truthy());
    match req.first().value() {
        Value::Document(d) if all(d) => About::Everything,
        Value::Array(list) => About::These(list.iter().filter_map(|e| one(e.value())).collect()),
        v => one(v).map_or(About::Database, |found| About::These(vec![found])),
    }
}

/// Whether each of those asked about is named once.
fn are_named_once(req: &Request<'_>) -> bool {
    let once = |v: Value<'_>| v.as_doc().is_none_or(has_unique_names);
    match req.first().value() {
        Value::Array(list) => list.iter().all(|e| once(e.value())),
        v => once(v),
    }
}

/// Everybody may look at itself.
pub fn users_info<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    if !are_named_once(req) {
        return Ok(who.may_everything());
    }
    Ok(match about(req, "user") {
        About::Database => who.may(Target::Database(req.db), &[ViewUser]),
        About::Everything => who.may_on_cluster(ViewUser),
        About::These(users) => users.iter().all(|(user, db)| {
            who.user() == Some(&UserName::new(*user, *db)) || who.may(Target::Database(db), &[ViewUser])
        }),
    })
}

/// And at its roles.
pub fn roles_info<S: Node>(_: &S, _: &OpCtx, req: &Request<'_>, who: &Authority) -> Result<bool> {
    if !are_named_once(req) {
        return Ok(who.may_everything());
    }
    Ok(match about(req, "role") {
        About::Database => who.may(Target::Database(req.db), &[ViewRole]),
        About::Everything => who.may_on_cluster(ViewRole),
        About::These(roles) => roles.iter().all(|(role, db)| {
            who.roles().contains(&RoleName::new(*role, *db)) || who.may(Target::Database(db), &[ViewRole])
        }),
    })
}
