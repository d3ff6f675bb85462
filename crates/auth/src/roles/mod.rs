//! Roles: what they allow by themselves, which others they include, and what that makes for a user.

pub mod builtin;
mod graph;

pub use graph::{Resolved, Role, Roles};

use std::fmt;

/// A role is known by its name and the database that it belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RoleName {
    pub role: String,
    pub db: String,
}

impl RoleName {
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
