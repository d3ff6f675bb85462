//! What a client must be allowed for commands whose arguments decide it: a check for each, by subject, the same on servers and routers.
//!
//! The rows of [`crate::table`] say it for all others. A check looks at what the request says, not at what is there: whether
//! a collection exists is nobody's to learn who may not ask. What cannot be read of the arguments is left to the command to refuse.
//! Every check but that of `bulkWrite`, which 6.0.5 does not have, was compared with it for each built-in role (`tests/privileges`).

mod aggregation;
mod definitions;
mod operations;
mod principals;
pub mod sharding;
mod writes;

pub use aggregation::{aggregate, explain, map_reduce};
pub use definitions::{
    clone_as_capped, coll_mod, create, data_size, list_collections, list_databases, rename, split_vector,
    validate_metadata,
};
pub use operations::{
    backup, current_op, diagnostic_data, file_md5, kill_by_pattern, kill_op, of_its_own, profile,
    profiling_filter,
};
pub use principals::{
    create_role, create_user, grant_privileges, grant_roles, merge, revoke_privileges, revoke_roles,
    roles_info, update_role, update_user, users_info,
};
pub use writes::{bulk_write, find_and_modify, insert, update};

use crate::Request;
use pando_auth::{Action, Authority, Target};
use pando_bson::{RawDoc, Value};

/// The command's first value, if it is a collection's name.
pub fn collection<'a>(req: &Request<'a>) -> &'a str {
    match req.first().value() {
        Value::String(name) => name,
        _ => "$cmd",
    }
}

pub fn text<'a>(doc: &'a RawDoc, name: &str) -> Option<&'a str> {
    doc.get(name).and_then(|v| v.as_str())
}

pub fn is_on(doc: &RawDoc, name: &str) -> bool {
    doc.get(name).is_some_and(|v| v.is_truthy())
}

/// The documents of an array of the body, or of the sequence of that name beside it.
fn each<'a>(req: &'a Request<'a>, name: &str) -> Vec<&'a RawDoc> {
    let beside = req.sequences.iter().filter(|s| s.name == name).flat_map(|s| s.docs());
    let within = req.body.get(name).and_then(|v| v.as_array()).into_iter().flatten();
    within.filter_map(|e| e.value().as_doc()).chain(beside).collect()
}

/// `db.collection` in two.
pub fn split(full: &str) -> (&str, &str) {
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
