//! Roles: what they allow by themselves, which others they include, and what that makes for a user.

pub mod builtin;
mod graph;
mod stored;

pub use graph::{Resolved, Role, Roles};

use pando_bson::{Bson, Document, doc};
use std::fmt;

/// A role is known by its name and the database that it belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RoleName {
    pub role: String,
    pub db: String,
}

impl RoleName {
    /// The `_id` of its document.
    pub fn id(&self) -> String {
        format!("{}.{}", self.db, self.role)
    }
    pub fn document(&self) -> Document {
        doc! { "role": self.role.as_str(), "db": self.db.as_str() }
    }
    /// The reverse of [`RoleName::document`].
    pub fn of_document(b: &Bson) -> Option<RoleName> {
        let d = b.as_doc()?;
        Some(RoleName::new(d.get("role").and_then(Bson::as_str)?, d.get("db").and_then(Bson::as_str)?))
    }
    pub fn new(role: impl Into<String>, db: impl Into<String>) -> RoleName {
        RoleName { role: role.into(), db: db.into() }
    }
    pub fn is_builtin(&self) -> bool {
        builtin::privileges(self).is_some()
    }
}

/// `role@db`
impl fmt::Display for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.role, self.db)
    }
}
