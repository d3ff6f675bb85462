//! Databases that move to another shard (SH-DDL-11): which collections that one was given, and how far it is.
//!
//! In memory, like the donations that record what is written meanwhile: whoever becomes primary gives the move up.

use super::donations::Donation;
use pando_base::panics::poisoned;
use pando_base::{HashMap, Namespace, Uuid};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// One collection.
pub(crate) struct MovingCollection {
    pub(crate) ns: Namespace,
    /// Here, and on the other shard.
    pub(crate) here: Uuid,
    pub(crate) there: Uuid,
    /// What is written here meanwhile.
    pub(crate) donation: Arc<Donation>,
    /// The documents that it had are there. Capped ones are given while nobody writes, in their order.
    pub(crate) is_copied: bool,
    /// How many indexes the other shard was told of. None is dropped meanwhile, but nobody who makes one waits for a move.
    pub(crate) indexes: AtomicUsize,
    pub(crate) turns: Turns,
}

/// Numbers of the turns that were given.
#[derive(Default)]
pub(crate) struct Turns {
    changes: AtomicU64,
    histories: AtomicU64,
}

impl Turns {
    pub(crate) fn next_changes(&self) -> u64 {
        self.changes.fetch_add(1, Relaxed) + 1
    }
    pub(crate) fn next_histories(&self) -> u64 {
        self.histories.fetch_add(1, Relaxed) + 1
    }
}

#[derive(Default)]
pub(crate) struct MovingDatabases(Mutex<HashMap<String, Vec<Arc<MovingCollection>>>>);

impl MovingDatabases {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Vec<Arc<MovingCollection>>>> {
        self.0.lock().unwrap_or_else(poisoned)
    }
    pub(crate) fn add(&self, moving: MovingCollection) -> Arc<MovingCollection> {
        let moving = Arc::new(moving);
        self.all().entry(moving.ns.db().to_owned()).or_default().push(moving.clone());
        moving
    }
    pub(crate) fn of(&self, db: &str) -> Vec<Arc<MovingCollection>> {
        self.all().get(db).cloned().unwrap_or_default()
    }
    /// Forgets them, and returns what there was.
    pub(crate) fn end(&self, db: &str) -> Vec<Arc<MovingCollection>> {
        self.all().remove(db).unwrap_or_default()
    }
}
