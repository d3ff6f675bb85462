//! What may be shown of a command: in the log, in profiles, in `currentOp`, in refusals and in the audit log. All of them ask here.
//!
//! Of commands that carry passwords the fields are named that are known to hold none, so that a field spelled wrong, or of the wrong
//! type, is not shown either. The conversation of a login is shown by its name alone.

use crate::spec::Flags;
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use std::borrow::Cow;

/// What stands for what is not shown.
const HIDDEN: &str = "xxx";

/// Fields of `createUser` and `updateUser` that are shown. `pwd` is shown as [`HIDDEN`].
const OF_USERS: &[&str] = &[
    "createUser",
    "updateUser",
    "roles",
    "customData",
    "mechanisms",
    "digestPassword",
    "authenticationRestrictions",
    "writeConcern",
    "comment",
    "maxTimeMS",
    "lsid",
    "txnNumber",
    "$db",
    "$clusterTime",
    "$readPreference",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
];

/// `name` is the registry's.
pub fn shown<'b>(name: &str, flags: Flags, db: &str, body: &'b RawDoc) -> Cow<'b, RawDoc> {
    if is_of_credentials(db, body) {
        return Cow::Owned(hidden_but_name(body));
    }
    if !flags.has(Flags::SENSITIVE) {
        return Cow::Borrowed(body);
    }
    match name {
        "createUser" | "updateUser" => Cow::Owned(of_user(body)),
        "hello" | "isMaster" => Cow::Owned(without_login(body)),
        "applyOps" if !names_credentials(body) => Cow::Borrowed(body),
        "bulkWrite" if body.elem("ops").is_none() || !writes_credentials(body) => Cow::Borrowed(body),
        "explain" => match body.first().map(|e| e.value()) {
            Some(Value::Document(inner)) if !is_secret(db, inner) => Cow::Borrowed(body),
            _ => Cow::Owned(hidden(name)),
        },
        _ => Cow::Owned(hidden(name)),
    }
}

/// Whether documents beside the body may be shown.
pub fn shows_documents(name: &str, flags: Flags, db: &str, body: &RawDoc) -> bool {
    matches!(shown(name, flags, db, body), Cow::Borrowed(_))
}

/// The name of a command alone.
fn hidden(name: &str) -> DocBuf {
    let mut shown = DocBuilder::new();
    shown.str(name, HIDDEN);
    shown.finish()
}

/// A command on the collection where users are kept.
fn is_of_credentials(db: &str, body: &RawDoc) -> bool {
    db == "admin" && matches!(body.first().map(|e| e.value()), Some(Value::String("system.users")))
}

fn hidden_but_name(body: &RawDoc) -> DocBuf {
    let mut shown = DocBuilder::new();
    body.first().into_iter().for_each(|e| {
        shown.elem(e);
    });
    shown.finish()
}

/// Whether a command within another one is of the kind that is not shown.
fn is_secret(db: &str, inner: &RawDoc) -> bool {
    let name = inner.first().map_or("", |e| e.name());
    let named = crate::COMMANDS.iter().find(|row| row.name == name || row.aliases.contains(&name));
    // What there is no command for may be one that is spelled wrong.
    named.is_none_or(|row| row.flags.has(Flags::SENSITIVE)) || is_of_credentials(db, inner)
}

/// Entries of an oplog may hold what is kept of users.
fn names_credentials(body: &RawDoc) -> bool {
    let name = b"system.users";
    body.as_bytes().windows(name.len()).any(|part| part == name)
}

/// Of a `bulkWrite` whose operations are not beside the body. Where their collections are is not known when those are.
fn writes_credentials(body: &RawDoc) -> bool {
    let Some(named) = body.get("nsInfo").and_then(|v| v.as_array()) else { return true };
    let mut named = named.iter().filter_map(|e| e.value().as_doc());
    named.any(|d| d.get("ns").and_then(|v| v.as_str()) == Some("admin.system.users"))
}

fn of_user(body: &RawDoc) -> DocBuf {
    let mut shown = DocBuilder::new();
    for e in body {
        match e.name() {
            "pwd" => {
                shown.str("pwd", HIDDEN);
            }
            // A name that is no text may be anything.
            "createUser" | "updateUser" if !matches!(e.value(), Value::String(_)) => {
                shown.str(e.name(), HIDDEN);
            }
            name if OF_USERS.contains(&name) => {
                shown.elem(e);
            }
            _ => {}
        }
    }
    shown.finish()
}

fn without_login(body: &RawDoc) -> DocBuf {
    let mut shown = DocBuilder::new();
    for e in body {
        match e.name_bytes() {
            b"speculativeAuthenticate" => shown.str("speculativeAuthenticate", HIDDEN),
            _ => shown.elem(e),
        };
    }
    shown.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    fn of(db: &str, body: Document) -> String {
        let body = body.to_raw();
        let name = body.first().map_or("", |e| e.name());
        let row = crate::COMMANDS.iter().find(|row| row.name == name || row.aliases.contains(&name)).unwrap();
        shown(row.name, row.flags, db, &body).into_owned().to_string()
    }

    #[test]
    fn no_field_that_may_hold_a_secret_is_shown() {
        let none: Vec<pando_bson::Bson> = Vec::new();
        for (db, body) in [
            ("test", doc! { "createUser": "ann", "pwd": "s3cret", "roles": none.clone() }),
            ("test", doc! { "createUser": "ann", "pwd": { "a": "s3cret" } }),
            ("test", doc! { "createUser": { "pwd": "s3cret" }, "roles": none.clone() }),
            ("test", doc! { "updateUser": "ann", "password": "s3cret" }),
            ("test", doc! { "saslStart": "s3cret", "payload": "s3cret" }),
            ("test", doc! { "saslContinue": 1, "payload": "s3cret" }),
            ("test", doc! { "authenticate": 1, "key": "s3cret" }),
            ("test", doc! { "hello": 1, "speculativeAuthenticate": { "saslStart": 1, "payload": "s3cret" } }),
            (
                "test",
                doc! { "isMaster": 1, "speculativeAuthenticate": { "saslStart": 1, "payload": "s3cret" } },
            ),
            ("test", doc! { "explain": { "createUser": "ann", "pwd": "s3cret" } }),
            ("test", doc! { "explain": { "creatUser": "ann", "pwd": "s3cret" } }),
            ("admin", doc! { "insert": "system.users", "documents": [{ "credentials": "s3cret" }] }),
            (
                "admin",
                doc! { "applyOps": [{ "op": "i", "ns": "admin.system.users", "o": { "c": "s3cret" } }] },
            ),
        ] {
            let shown = of(db, body.clone());
            assert!(!shown.contains("s3cret"), "{body:?} is shown as {shown}");
        }
    }

    #[test]
    fn the_rest_is_shown() {
        for body in [
            doc! { "insert": "system.users", "documents": [{ "a": 1 }] },
            doc! { "explain": { "find": "c", "filter": { "a": 1 } } },
            doc! { "applyOps": [{ "op": "i", "ns": "test.c", "o": { "a": 1 } }] },
            doc! { "hello": 1, "client": { "driver": { "name": "x" } } },
        ] {
            assert_eq!(of("test", body.clone()), body.to_raw().to_string());
        }
        let user = of("test", doc! { "createUser": "ann", "pwd": "s3cret", "roles": ["read"] });
        assert_eq!(user, doc! { "createUser": "ann", "pwd": "xxx", "roles": ["read"] }.to_raw().to_string());
    }
}
