//! Whose a database is (SV-MODE-2): `<tenant>_<name>` belongs to a tenant; `admin`, `config` and `local` belong to the set.

use crate::{Error, Result, limits};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What stands between a tenant and the rest of a database's name.
const END: char = '_';

/// The part of a database's name before its first `_`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TenantId(Box<str>);

impl TenantId {
    /// # Errors
    /// 2 for what no database's name can begin with.
    pub fn parse(text: &str) -> Result<TenantId> {
        let bad = text.is_empty()
            || text.len() >= limits::DB_NAME_BYTES_MAX
            || text.bytes().any(|b| matches!(b, b'_' | b'/' | b'\\' | b'.' | b' ' | b'"' | b'$' | 0));
        match bad {
            true => Err(Error::bad_value(format!("Invalid tenant id: '{text}'"))),
            false => Ok(TenantId(text.into())),
        }
    }
    /// Whose a database is. `None`: the set's, or nobody's in particular.
    pub fn of(db: &str) -> Option<&str> {
        db.split_once(END).map(|(tenant, _)| tenant).filter(|tenant| !tenant.is_empty())
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// So that a table of them is asked by the part of a name.
impl std::borrow::Borrow<str> for TenantId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose data something is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TenantScope<'a> {
    One(Cow<'a, str>),
    /// Those that a set had when it began to be merged into another one: who comes into being later is not theirs.
    Several(Arc<BTreeSet<String>>),
}

impl<'a> TenantScope<'a> {
    pub fn one(tenant: &'a str) -> TenantScope<'a> {
        TenantScope::One(Cow::Borrowed(tenant))
    }
    pub fn several<'t>(tenants: impl Iterator<Item = &'t str>) -> TenantScope<'a> {
        TenantScope::Several(Arc::new(tenants.map(str::to_owned).collect()))
    }
    pub fn into_owned(self) -> TenantScope<'static> {
        match self {
            TenantScope::One(tenant) => TenantScope::One(Cow::Owned(tenant.into_owned())),
            TenantScope::Several(tenants) => TenantScope::Several(tenants),
        }
    }
    /// Whether a database is among theirs.
    pub fn owns(&self, db: &str) -> bool {
        match self {
            TenantScope::One(tenant) => TenantId::of(db) == Some(tenant),
            TenantScope::Several(tenants) => TenantId::of(db).is_some_and(|of| tenants.contains(of)),
        }
    }
    /// Whether a namespace is in one of their databases.
    pub fn owns_ns(&self, ns: &str) -> bool {
        ns.split_once('.').is_some_and(|(db, _)| self.owns(db))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_one_tenant_or_several() {
        let one = TenantScope::one("acme");
        assert!(one.owns("acme_db") && !one.owns("acmes_db") && !one.owns("acme") && !one.owns("admin"));
        assert!(one.owns_ns("acme_db.c") && !one.owns_ns("acme_db"));
        let two = TenantScope::several(["acme", "zeta"].into_iter());
        assert!(two.owns("zeta_db") && two.owns("acme_db") && !two.owns("zetas_db") && !two.owns("admin"));
        assert!(!TenantScope::several(std::iter::empty()).owns("acme_db"));
    }
    #[test]
    fn a_tenant_is_what_stands_before_the_first_underscore() {
        let cases = [
            ("acme_orders", Some("acme")),
            ("acme_orders_old", Some("acme")),
            ("acme_", Some("acme")),
            ("_orders", None),
            ("orders", None),
            ("admin", None),
            ("", None),
        ];
        for (db, tenant) in cases {
            assert_eq!(TenantId::of(db), tenant, "{db}");
        }
    }

    #[test]
    fn what_begins_no_name_is_no_tenant() {
        for text in ["", "a_b", "a.b", "a b", "a/b", "a$b", "a\0", &"x".repeat(63)] {
            assert!(TenantId::parse(text).is_err(), "{text}");
        }
        assert!(TenantId::parse(&"x".repeat(62)).is_ok());
    }
}
