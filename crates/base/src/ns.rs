//! Database and collection names, with MongoDB's validity rules.

use crate::{Error, ErrorCode, Result, limits};
use std::fmt;

/// The database of users whose credentials are elsewhere. It has no collections.
pub const EXTERNAL: &str = "$external";

/// A database name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DbName(String);

impl DbName {
    /// Checks length and characters; MongoDB's code 73 otherwise.
    pub fn parse(name: &str) -> Result<DbName> {
        let bad = name.is_empty()
            || name.len() > limits::DB_NAME_BYTES_MAX
            || name.bytes().any(|b| matches!(b, b'/' | b'\\' | b'.' | b' ' | b'"' | b'$' | 0));
        if bad && name != EXTERNAL {
            return Err(Error::new(
                ErrorCode::InvalidNamespace,
                format!("Invalid database name: '{}'", name),
            ));
        }
        Ok(DbName(name.to_owned()))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DbName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `db.collection`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    full: String,
    dot: usize,
}

impl Namespace {
    /// Joins a checked database name with a collection name that any command accepts; rules and words of MongoDB's
    /// code 73. What may be read ([`Namespace::check_readable`]) and created (the catalog's business) is narrower.
    pub fn new(db: &str, coll: &str) -> Result<Namespace> {
        let db = DbName::parse(db)?;
        let ns = Namespace::unchecked(db.as_str(), coll);
        let text = if coll.contains('\0') {
            "namespaces cannot have embedded null characters".to_owned()
        } else if coll.is_empty() {
            format!("Invalid namespace specified '{ns}'")
        } else if coll.starts_with('.') {
            format!("Collection names cannot start with '.': {coll}")
        } else {
            return Ok(ns);
        };
        Err(Error::new(ErrorCode::InvalidNamespace, text))
    }
    /// Code 73 for a `$` in the name, which `find`, `count` and `distinct` refuse.
    pub fn check_readable(&self) -> Result<()> {
        let coll = self.coll();
        let has_sign = self.db() == EXTERNAL || coll.contains('$');
        if has_sign && !coll.starts_with("$cmd.aggregate") && self.full != "local.oplog.$main" {
            // The missing quote is MongoDB's.
            let text = format!("Invalid collection name specified '{self}");
            return Err(Error::new(ErrorCode::InvalidNamespace, text));
        }
        Ok(())
    }
    /// For names made by the server itself or read back from the catalog.
    pub fn unchecked(db: &str, coll: &str) -> Namespace {
        let mut full = String::with_capacity(db.len() + 1 + coll.len());
        full.push_str(db);
        full.push('.');
        full.push_str(coll);
        Namespace { full, dot: db.len() }
    }
    /// Splits `db.coll` at the first dot.
    pub fn parse(full: &str) -> Result<Namespace> {
        match full.split_once('.') {
            Some((db, coll)) => Namespace::new(db, coll),
            None => Err(Error::new(
                ErrorCode::InvalidNamespace,
                format!("Invalid namespace specified '{}'", full),
            )),
        }
    }
    pub fn db(&self) -> &str {
        &self.full[..self.dot]
    }
    pub fn coll(&self) -> &str {
        &self.full[self.dot + 1..]
    }
    pub fn as_str(&self) -> &str {
        &self.full
    }
    /// The namespace that command oplog entries carry: `<db>.$cmd`.
    pub fn command_ns(&self) -> Namespace {
        Namespace::unchecked(self.db(), "$cmd")
    }
    /// True for namespaces whose writes make no oplog entry (R-OBS-4).
    pub fn is_unreplicated(&self) -> bool {
        self.db() == "local" || self.coll() == "system.profile"
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}
impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_names_get_code_73() {
        for db in ["", "a.b", "a b", "a/b", "a$b"] {
            assert_eq!(DbName::parse(db).unwrap_err().code, ErrorCode::InvalidNamespace, "{db}");
        }
        for coll in ["", ".a", "a\0b"] {
            assert_eq!(Namespace::new("db", coll).unwrap_err().code, ErrorCode::InvalidNamespace, "{coll}");
        }
        assert!(Namespace::new("db", "a$b").is_ok_and(|ns| ns.check_readable().is_err()));
    }

    #[test]
    fn namespace_splits_at_the_first_dot() {
        let ns = Namespace::parse("db.a.b").unwrap();
        assert_eq!((ns.db(), ns.coll()), ("db", "a.b"));
    }
}
