//! What a client must be allowed for commands whose arguments decide it: a check for each, by subject.
//!
//! The rows of [`pando_command::table`] say it for all others. A check looks at what the request says, not at what is there: whether
//! a collection exists is nobody's to learn who may not ask. What cannot be read of the arguments is left to the command to refuse.
//! Every check but that of `bulkWrite`, which 6.0.5 does not have, was compared with it for each built-in role (`tests/privileges`).

mod aggregation;
mod definitions;
mod operations;
mod principals;
mod writes;

use crate::Server;
use pando_auth::{Action, Authority, Target};
use pando_bson::{RawDoc, Value};
use pando_command::{Check, Request};

/// The command's first value, if it is a collection's name.
fn collection<'a>(req: &Request<'a>) -> &'a str {
    match req.first().value() {
        Value::String(name) => name,
        _ => "$cmd",
    }
}

fn text<'a>(doc: &'a RawDoc, name: &str) -> Option<&'a str> {
    doc.get(name).and_then(|v| v.as_str())
}

fn is_on(doc: &RawDoc, name: &str) -> bool {
    doc.get(name).is_some_and(|v| v.is_truthy())
}

/// The documents of an array of the body, or of the sequence of that name beside it.
fn each<'a>(req: &'a Request<'a>, name: &str) -> Vec<&'a RawDoc> {
    let beside = req.sequences.iter().filter(|s| s.name == name).flat_map(|s| s.docs());
    let within = req.body.get(name).and_then(|v| v.as_array()).into_iter().flatten();
    within.filter_map(|e| e.value().as_doc()).chain(beside).collect()
}

/// `db.collection` in two.
fn split(full: &str) -> (&str, &str) {
    full.split_once('.').unwrap_or((full, ""))
}

/// `{db, coll}` or a name in `db`.
fn target_of<'a>(v: Option<Value<'a>>, db: &'a str, name: &str) -> Option<Target<'a>> {
    match v? {
        Value::String(coll) => Some(Target::Collection(db, coll)),
        Value::Document(d) => {
            let coll = text(d, name)?;
            Some(Target::Collection(text(d, "db").unwrap_or(db), coll))
        }
        _ => None,
    }
}

/// `bypassDocumentValidation` is an action of its own on what is written.
fn may_write(who: &Authority, body: &RawDoc, target: Target<'_>, actions: &[Action]) -> bool {
    let bypasses = || is_on(body, "bypassDocumentValidation");
    who.may(target, actions) && (who.may(target, &[Action::BypassDocumentValidation]) || !bypasses())
}

pub(super) static CHECKS: &[(&str, Check<Server>)] = &[
    ("_closeBackup", operations::backup),
    ("_mergeAuthzCollections", principals::merge),
    ("_openBackup", operations::backup),
    ("_readBackup", operations::backup),
    ("aggregate", aggregation::aggregate),
    ("applyOps", writes::apply_ops),
    ("bulkWrite", writes::bulk_write),
    ("cloneCollectionAsCapped", definitions::clone_as_capped),
    ("collMod", definitions::coll_mod),
    ("create", definitions::create),
    ("createRole", principals::create_role),
    ("createUser", principals::create_user),
    ("currentOp", operations::current_op),
    ("dataSize", definitions::data_size),
    ("explain", aggregation::explain),
    ("filemd5", operations::file_md5),
    ("findAndModify", writes::find_and_modify),
    ("getDiagnosticData", operations::diagnostic_data),
    ("getMore", operations::of_its_own),
    ("grantPrivilegesToRole", principals::grant_privileges),
    ("grantRolesToRole", principals::grant_roles),
    ("grantRolesToUser", principals::grant_roles),
    ("insert", writes::insert),
    ("killAllSessionsByPattern", operations::kill_by_pattern),
    ("killCursors", operations::of_its_own),
    ("killOp", operations::kill_op),
    ("killSessions", operations::of_its_own),
    ("listCollections", definitions::list_collections),
    ("listDatabases", definitions::list_databases),
    ("mapReduce", aggregation::map_reduce),
    ("profile", operations::profile),
    ("renameCollection", definitions::rename),
    ("revokePrivilegesFromRole", principals::revoke_privileges),
    ("revokeRolesFromRole", principals::revoke_roles),
    ("revokeRolesFromUser", principals::revoke_roles),
    ("rolesInfo", principals::roles_info),
    ("setProfilingFilterGlobally", operations::profiling_filter),
    ("splitVector", definitions::split_vector),
    ("update", writes::update),
    ("updateRole", principals::update_role),
    ("updateUser", principals::update_user),
    ("usersInfo", principals::users_info),
    ("validateDBMetadata", definitions::validate_metadata),
];
