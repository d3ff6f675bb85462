//! Logins, what was asked and whether it was allowed, and writes past the commands for users and roles.

use crate::Event;
use crate::who::{Place, append_users};
use pando_auth::UserName;
use pando_base::{ErrorCode, Namespace};
use pando_bson::RawDoc;

/// How somebody wrote a user or a role directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    Insert,
    Update,
    Remove,
}

impl Mutation {
    fn name(self) -> &'static str {
        match self {
            Mutation::Insert => "insert",
            Mutation::Update => "update",
            Mutation::Remove => "remove",
        }
    }
}

impl Event {
    /// A login, or an attempt. What a client did not say of itself is empty.
    pub fn authenticate(user: &UserName, mechanism: &str, result: ErrorCode) -> Event {
        Event::done("authenticate", |p| {
            p.str("user", &user.user).str("db", &user.db).str("mechanism", mechanism);
        })
        .with_result(result)
        .of_access()
    }
    /// Whether a command was allowed. `args` is shown as it is: whoever calls has taken secrets out.
    pub fn auth_check(command: &str, ns: &str, args: &RawDoc, result: ErrorCode) -> Event {
        Event::done("authCheck", |p| {
            p.str("command", command).str("ns", ns).raw_doc("args", args);
        })
        .with_result(result)
        .of_access()
    }
    /// Somebody is no longer logged in who was.
    pub fn logout(reason: &str, before: &UserName) -> Event {
        Event::done("logout", |p| {
            p.str("reason", reason);
            append_users(p, "initialUsers", [before]);
            append_users(p, "updatedUsers", None);
        })
        .of_access()
    }
    /// What a client says of itself in its first `hello`.
    pub fn client_metadata(local: &Place, told: &RawDoc) -> Event {
        Event::done("clientMetadata", |p| {
            local.append_to("localEndpoint", p);
            p.raw_doc("clientMetadata", told);
        })
        .of_access()
    }
    /// A document of users or roles was written by no command for them. Its credentials are not shown.
    pub fn direct_auth_mutation(ns: &Namespace, document: &RawDoc, by: Mutation) -> Event {
        Event::done("directAuthMutation", |p| {
            p.doc("document", |d| {
                document.iter().filter(|e| e.name_bytes() != b"credentials").for_each(|e| {
                    d.elem(e);
                });
            });
            p.str("ns", ns.as_str()).str("operation", by.name());
        })
    }
}
