//! The order of configurations (R-CONF-5): by term, then version; without a term on either side by version alone.

use crate::config::ReplSetConfig;
use pando_base::Term;
use std::cmp::Ordering;

/// What tells two configurations of a set apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConfigId {
    pub version: i64,
    /// -1 after a forced reconfiguration and in documents written before terms existed.
    pub term: Term,
}

impl ConfigId {
    /// Of a node that has no configuration.
    pub const UNINITIALIZED: ConfigId = ConfigId { version: -2, term: -1 };

    /// Not `Ord`: with unset terms the order is not transitive.
    pub fn compare(self, other: ConfigId) -> Ordering {
        if self.term == -1 || other.term == -1 {
            self.version.cmp(&other.version)
        } else {
            (self.term, self.version).cmp(&(other.term, other.version))
        }
    }
    pub fn is_newer_than(self, other: ConfigId) -> bool {
        self.compare(other) == Ordering::Greater
    }
    pub fn is_older_than(self, other: ConfigId) -> bool {
        self.compare(other) == Ordering::Less
    }
}

impl pando_base::redaction::Plain for ConfigId {}

impl std::fmt::Display for ConfigId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{version: {}, term: {}}}", self.version, self.term)
    }
}

impl ReplSetConfig {
    pub fn id(&self) -> ConfigId {
        ConfigId { version: self.version, term: self.term }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_term_decides_unless_one_side_has_none() {
        let c = |version, term| ConfigId { version, term };
        assert!(c(2, 5).is_newer_than(c(9, 4)));
        assert!(c(9, 4).is_newer_than(c(8, 4)));
        assert!(c(9, -1).is_newer_than(c(8, 4)));
        assert!(c(7, 5).is_older_than(c(8, -1)));
        assert_eq!(c(3, 3).compare(c(3, 3)), Ordering::Equal);
        assert!(c(1, -1).is_newer_than(ConfigId::UNINITIALIZED));
    }
}
