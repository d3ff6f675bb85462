//! Which instances there are: the policy of a host, without the host.
//!
//! An instance is known by its service and its key. Whoever asks for one that runs joins it if the options are the same,
//! byte for byte, and is refused otherwise. What a service calls options is its own choice: one that calls nothing so lets
//! everybody join.

use pando_base::{Error, ErrorCode, Result, limits};
use std::collections::BTreeMap;

/// Service and key.
pub type Key = (usize, Vec<u8>);

struct Row<V> {
    options: Vec<u8>,
    instance: V,
}

/// The instances of one node.
pub struct Table<V> {
    rows: BTreeMap<Key, Row<V>>,
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Table { rows: BTreeMap::new() }
    }
}

impl<V> Table<V> {
    pub fn get(&self, key: &Key) -> Option<&V> {
        self.rows.get(key).map(|r| &r.instance)
    }
    /// The instance to join; `None`: there is room for a new one.
    pub fn ask(&self, key: &Key, options: &[u8]) -> Result<Option<&V>> {
        match self.rows.get(key) {
            Some(row) if row.options == options => Ok(Some(&row.instance)),
            Some(_) => {
                let text = "the same operation is in progress with other options";
                Err(Error::new(ErrorCode::ConflictingOperationInProgress, text))
            }
            None if self.count(key.0) >= limits::WORKFLOW_INSTANCES_MAX => {
                let text = format!("{} operations of this kind are in progress", self.count(key.0));
                Err(Error::new(ErrorCode::LockBusy, text))
            }
            None => Ok(None),
        }
    }
    /// A new instance, or one that was found at a step-up: that one has its place already, however many there are.
    pub fn add(&mut self, key: Key, options: Vec<u8>, instance: V) {
        self.rows.insert(key, Row { options, instance });
    }
    /// An instance that ended goes; its key may be another's by now.
    pub fn remove_if(&mut self, key: &Key, which: impl FnOnce(&V) -> bool) {
        if self.get(key).is_some_and(which) {
            self.rows.remove(key);
        }
    }
    pub fn clear(&mut self) {
        self.rows.clear();
    }
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
    /// Those of one service.
    pub fn of(&self, service: usize) -> impl Iterator<Item = &V> {
        self.rows.range((service, Vec::new())..(service + 1, Vec::new())).map(|(_, row)| &row.instance)
    }
    /// Instances of one service.
    pub fn count(&self, service: usize) -> usize {
        self.rows.range((service, Vec::new())..(service + 1, Vec::new())).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(service: usize, name: &str) -> Key {
        (service, name.as_bytes().to_vec())
    }

    #[test]
    fn who_asks_for_the_same_joins_and_who_asks_for_something_else_is_refused() {
        let mut t = Table::default();
        assert!(t.ask(&key(0, "a"), b"x").unwrap().is_none());
        t.add(key(0, "a"), b"x".to_vec(), 7);
        assert_eq!(t.ask(&key(0, "a"), b"x").unwrap(), Some(&7));
        let refused = t.ask(&key(0, "a"), b"y").unwrap_err();
        assert_eq!(refused.code, ErrorCode::ConflictingOperationInProgress);
        assert!(t.ask(&key(1, "a"), b"y").unwrap().is_none(), "another service");
        assert!(t.ask(&key(0, "b"), b"y").unwrap().is_none(), "another key");
    }
    #[test]
    fn a_full_table_refuses_new_instances_and_lets_join_and_come_back() {
        let mut t = Table::default();
        for n in 0..limits::WORKFLOW_INSTANCES_MAX {
            t.add(key(0, &n.to_string()), Vec::new(), n);
        }
        assert_eq!(t.ask(&key(0, "new"), b"").unwrap_err().code, ErrorCode::LockBusy);
        assert_eq!(t.ask(&key(0, "5"), b"").unwrap(), Some(&5));
        assert!(t.ask(&key(1, "new"), b"").unwrap().is_none());
        t.add(key(0, "found"), Vec::new(), 0);
        assert_eq!(t.count(0), limits::WORKFLOW_INSTANCES_MAX + 1);
    }
    #[test]
    fn an_instance_that_ended_late_takes_nobody_else_with_it() {
        let mut t = Table::default();
        t.add(key(0, "a"), Vec::new(), 2);
        t.remove_if(&key(0, "a"), |v| *v == 1);
        assert_eq!(t.len(), 1);
        t.remove_if(&key(0, "a"), |v| *v == 2);
        assert!(t.is_empty());
    }
}
