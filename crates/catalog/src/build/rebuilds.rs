//! Which indexes a replay has to make at its end.

use pando_base::Uuid;
use pando_base::panics::poisoned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Collections, and those of their indexes that a replay has found to be ready: by name, and by the build that they are kept as
/// unfinished under. An index that is gone again may have given its name to one that is not ready.
#[derive(Default)]
pub(crate) struct Rebuilds(Mutex<BTreeMap<Uuid, BTreeSet<(Uuid, String)>>>);

impl Rebuilds {
    pub(crate) fn add(&self, coll: Uuid, build: Uuid, name: &str) {
        let mut all = self.0.lock().unwrap_or_else(poisoned);
        all.entry(coll).or_default().insert((build, name.to_owned()));
    }
    pub(crate) fn take(&self) -> BTreeMap<Uuid, BTreeSet<(Uuid, String)>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(poisoned))
    }
}
