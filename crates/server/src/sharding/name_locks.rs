//! Locks by name, which are there as long as somebody holds them or waits for them.

use pando_access::Lock;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub(crate) struct NameLocks(Mutex<BTreeMap<String, Lock>>);

impl NameLocks {
    pub(crate) fn of(&self, name: &str) -> Lock {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody holds those or waits for them.
        locks.retain(|_, lock| lock.is_shared_with_others());
        locks.entry(name.to_owned()).or_default().clone()
    }
}
