//! Which indexes a replay has to make at its end.

use pando_base::Uuid;
use pando_base::panics::poisoned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Collections and the names of their indexes that a replay has found to be ready.
#[derive(Default)]
pub(crate) struct Rebuilds(Mutex<BTreeMap<Uuid, BTreeSet<String>>>);

impl Rebuilds {
    pub(crate) fn add(&self, coll: Uuid, name: &str) {
        let mut all = self.0.lock().unwrap_or_else(poisoned);
        all.entry(coll).or_default().insert(name.to_owned());
    }
    pub(crate) fn take(&self) -> BTreeMap<Uuid, BTreeSet<String>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(poisoned))
    }
}
