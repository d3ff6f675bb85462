//! What may be shown of a command: in the log, in profiles, in `currentOp`, in refusals and in the audit log. All of them ask here.
//!
//! Of commands that carry passwords the fields are named that are known to hold none, so that a field spelled wrong, or of the wrong
//! type, is not shown either. The conversation of a login is shown by its name alone.

use crate::params::is_parameter;
use crate::spec::Flags;
use pando_bson::{DocBuf, DocBuilder, ElementType, RawDoc, Value};
use std::borrow::Cow;

/// What stands for what is not shown.
const HIDDEN: &str = "xxx";

/// Fields of `createUser` and `updateUser` that are shown where they have the type that belongs there. `pwd` is shown as [`HIDDEN`].
const OF_USERS: &[(&str, &[ElementType])] = &[
    ("createUser", &[ElementType::String]),
    ("updateUser", &[ElementType::String]),
    ("roles", &[ElementType::Array]),
    ("customData", &[ElementType::Document]),
    ("mechanisms", &[ElementType::Array]),
    ("digestPassword", &[ElementType::Boolean]),
    ("authenticationRestrictions", &[ElementType::Array]),
    ("writeConcern", &[ElementType::Document]),
    ("comment", &[ElementType::String, ElementType::Document]),
    ("maxTimeMS", &[ElementType::Int32, ElementType::Int64, ElementType::Double]),
    ("lsid", &[ElementType::Document]),
    ("txnNumber", &[ElementType::Int64]),
    ("$db", &[ElementType::String]),
    ("$clusterTime", &[ElementType::Document]),
    ("$readPreference", &[ElementType::Document]),
    ("apiVersion", &[ElementType::String]),
    ("apiStrict", &[ElementType::Boolean]),
    ("apiDeprecationErrors", &[ElementType::Boolean]),
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
        "setParameter" => Cow::Owned(of_known_parameters(body)),
        "explain" => match body.first().map(|e| e.value()) {
            Some(Value::Document(inner)) if !is_secret(db, inner) => Cow::Borrowed(body),
            _ => Cow::Owned(hidden(name)),
        },
        _ => Cow::Owned(hidden(name)),
    }
}

/// The collection that a command names, so far as that may be shown.
pub fn shown_name(shown: &RawDoc) -> Option<&str> {
    shown.first().and_then(|e| e.value().as_str()).filter(|name| *name != HIDDEN)
}

/// What may be shown of an error's words: they may repeat what the command said. Of one that is shown by its name alone, nothing.
pub fn shown_error<'e>(shown: &RawDoc, body: &RawDoc, words: &'e str) -> &'e str {
    let by_name_alone = shown.iter().count() == 1 && body.iter().count() > 1;
    if by_name_alone { HIDDEN } else { words }
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

/// A command on the collection where users are kept, or on the one that tools load them into.
fn is_of_credentials(db: &str, body: &RawDoc) -> bool {
    let named = || body.first().map(|e| e.value());
    db == "admin" && matches!(named(), Some(Value::String("system.users" | "tempusers")))
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
        match OF_USERS.iter().find(|(name, _)| *name == e.name()) {
            Some((_, types)) if types.contains(&e.value().element_type()) => {
                shown.elem(e);
            }
            Some((name, _)) => {
                shown.str(*name, HIDDEN);
            }
            None if e.name_bytes() == b"pwd" => {
                shown.str("pwd", HIDDEN);
            }
            None => {}
        }
    }
    shown.finish()
}

/// Parameters of other servers may be passwords (`ldapQueryPassword`).
fn of_known_parameters(body: &RawDoc) -> DocBuf {
    let mut shown = DocBuilder::new();
    for (n, e) in body.iter().enumerate() {
        match n == 0 || e.name_bytes().starts_with(b"$") || is_parameter(e.name()) {
            true => shown.elem(e),
            false => shown.str(e.name(), HIDDEN),
        };
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
            ("test", doc! { "createUser": "ann", "digestPassword": "s3cret" }),
            ("test", doc! { "updateUser": "ann", "password": "s3cret" }),
            ("admin", doc! { "setParameter": 1, "ldapQueryPassword": "s3cret" }),
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
            ("admin", doc! { "insert": "tempusers", "documents": [{ "credentials": "s3cret" }] }),
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
            doc! { "setParameter": 1, "quiet": true, "$db": "admin" },
        ] {
            assert_eq!(of("test", body.clone()), body.to_raw().to_string());
        }
        let user = of("test", doc! { "createUser": "ann", "pwd": "s3cret", "roles": ["read"] });
        assert_eq!(user, doc! { "createUser": "ann", "pwd": "xxx", "roles": ["read"] }.to_raw().to_string());
    }
}
