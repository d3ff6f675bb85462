//! A user as it is kept in `admin.system.users`.
//!
//! ```text
//! {_id: "<db>.<user>", userId: <UUID>, user, db, credentials: {"SCRAM-SHA-1": {...}, "SCRAM-SHA-256": {...}} | {external: true},
//!  authenticationRestrictions: [...], customData: {...}, roles: [{role, db}, ...]}
//! ```

use crate::Mechanism;
use crate::authority::SYSTEM_USER;
use crate::restrictions::Restrictions;
use crate::roles::RoleName;
use crate::scram::Credentials;
use pando_base::Uuid;
use pando_bson::{Binary, Bson, Document, doc};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A user is known by its name and the database that it belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UserName {
    pub user: String,
    pub db: String,
}

impl UserName {
    pub fn new(user: impl Into<String>, db: impl Into<String>) -> UserName {
        UserName { user: user.into(), db: db.into() }
    }
    /// The `_id` of its document.
    pub fn id(&self) -> String {
        format!("{}.{}", self.db, self.user)
    }
    /// As which members log in to each other.
    pub fn is_system(&self) -> bool {
        (self.user.as_str(), self.db.as_str()) == SYSTEM_USER
    }
    /// Whose a session is (`uid` of an `lsid`).
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_string()).into()
    }
}

/// `user@db`
impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.db)
    }
}

/// How a user proves who it is.
#[derive(Clone, Debug)]
pub enum Proof {
    /// By a password, in one of these mechanisms.
    Password(BTreeMap<Mechanism, Credentials>),
    /// Somebody else vouches for it: a user of `$external`.
    External,
}

/// What is kept of a user.
#[derive(Clone, Debug)]
pub struct User {
    pub name: UserName,
    /// Another one than that of a user of this name who was dropped before.
    pub id: Option<Uuid>,
    pub proof: Proof,
    pub restrictions: Restrictions,
    /// The application's.
    pub custom_data: Option<Document>,
    pub roles: BTreeSet<RoleName>,
}

impl User {
    /// Reads a document of `admin.system.users`; `None` where it has no name, or restrictions that cannot be read: they must not be passed by.
    /// Credentials that cannot be read are as if they were not there.
    pub fn of_document(d: &Document) -> Option<User> {
        let text = |name: &str| d.get(name).and_then(Bson::as_str);
        let name = UserName::new(text("user").filter(|u| !u.is_empty())?, text("db")?);
        let id = match d.get("userId") {
            Some(Bson::Binary(Binary { subtype: 4, bytes })) => Uuid::from_slice(bytes),
            _ => None,
        };
        let credentials = d.get("credentials").and_then(Bson::as_doc);
        let proof = match credentials.and_then(|c| c.get("external")) {
            Some(Bson::Boolean(true)) => Proof::External,
            _ => Proof::Password(credentials.map(passwords).unwrap_or_default()),
        };
        let restrictions = match d.get("authenticationRestrictions") {
            None => Restrictions::default(),
            Some(Bson::Array(list)) => Restrictions::of_array(list)?,
            Some(_) => return None,
        };
        let custom_data = d.get("customData").and_then(Bson::as_doc).cloned();
        let roles = d.get("roles").and_then(Bson::as_array);
        let roles = roles.into_iter().flatten().filter_map(RoleName::of_document).collect();
        Some(User { name, id, proof, restrictions, custom_data, roles })
    }

    /// The reverse of [`User::of_document`], in the order in which MongoDB writes the fields.
    pub fn document(&self) -> Document {
        let mut d = doc! { "_id": self.name.id() };
        if let Some(id) = &self.id {
            d.push("userId", Bson::Binary(Binary { subtype: 4, bytes: id.0.to_vec() }));
        }
        d.push("user", self.name.user.as_str());
        d.push("db", self.name.db.as_str());
        let credentials = match &self.proof {
            Proof::External => doc! { "external": true },
            Proof::Password(each) => each.iter().fold(doc! {}, |mut all, (mechanism, credentials)| {
                all.push(mechanism.name(), credentials.document());
                all
            }),
        };
        d.push("credentials", credentials);
        if !self.restrictions.is_empty() {
            let list = self.restrictions.documents().into_iter().map(Bson::from).collect();
            d.push("authenticationRestrictions", Bson::Array(list));
        }
        if let Some(data) = &self.custom_data {
            d.push("customData", data.clone());
        }
        d.push("roles", Bson::Array(self.roles.iter().map(RoleName::document).map(Bson::from).collect()));
        d
    }

    /// As `usersInfo` lists them.
    pub fn mechanisms(&self) -> Vec<&'static str> {
        match &self.proof {
            Proof::External => vec!["external"],
            Proof::Password(each) => each.keys().map(|m| m.name()).collect(),
        }
    }
}

fn passwords(d: &Document) -> BTreeMap<Mechanism, Credentials> {
    let each = Mechanism::ALL
        .into_iter()
        .filter_map(|m| Some((m, Credentials::of_document(m, d.get(m.name()).and_then(Bson::as_doc)?)?)));
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document that 6.0.5 has written.
    fn written() -> Document {
        doc! {
            "_id": "app.u2",
            "userId": Bson::Binary(Binary { subtype: 4, bytes: vec![7; 16] }),
            "user": "u2",
            "db": "app",
            "credentials": doc! {
                "SCRAM-SHA-1": doc! {
                    "iterationCount": 10000, "salt": "Ezoi9U3Cv5AUMCtj380ajQ==",
                    "storedKey": "y7pM1UyAZQSCYmrH/ijOd/aTTjA=", "serverKey": "yugOeS/ikJYrHjDEglxqhkkSrPI=",
                },
                "SCRAM-SHA-256": doc! {
                    "iterationCount": 15000, "salt": "oj8pdjEJlqprDtZykX2pZgW0apkQrLNqXkTixA==",
                    "storedKey": "k4eILFJ/N93u7sDtMUbQ/BqFN3zwbveVPngCrcHI86k=",
                    "serverKey": "IYHCUWNID3b6OResHLO9YD2I29Ahe36qcMdG9rkzAoU=",
                },
            },
            "authenticationRestrictions": Bson::Array(vec![Bson::from(doc! {
                "clientSource": Bson::Array(vec![Bson::from("127.0.0.1")]), "serverAddress": Bson::Array(vec![Bson::from("::1/64")]),
            })]),
            "customData": doc! { "a": 1 },
            "roles": Bson::Array(vec![
                Bson::from(doc! { "role": "read", "db": "app" }), Bson::from(doc! { "role": "readWrite", "db": "other" }),
            ]),
        }
    }

    #[test]
    fn a_document_is_read_and_written_the_same() {
        let user = User::of_document(&written()).unwrap();
        assert_eq!(user.mechanisms(), ["SCRAM-SHA-1", "SCRAM-SHA-256"]);
        assert_eq!(user.name.to_string(), "u2@app");
        assert_eq!(user.document(), written());
        let external = User { proof: Proof::External, ..user };
        assert_eq!(User::of_document(&external.document()).unwrap().mechanisms(), ["external"]);
    }

    #[test]
    fn what_cannot_be_read_lets_nobody_in() {
        let with = |name: &str, v: Bson| {
            let mut d = written();
            d.set(name, v);
            User::of_document(&d)
        };
        assert!(with("user", Bson::from("")).is_none());
        assert!(with("authenticationRestrictions", Bson::from("x")).is_none());
        assert!(with("authenticationRestrictions", Bson::Array(vec![Bson::from(doc! {})])).is_none());
        let broken = with("credentials", Bson::from(doc! { "SCRAM-SHA-1": doc! {} })).unwrap();
        assert!(broken.mechanisms().is_empty());
        assert!(with("roles", Bson::from(1)).unwrap().roles.is_empty());
    }
}
