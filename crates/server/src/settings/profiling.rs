//! Which databases are profiled (`profile`), and the entries that result.

use super::Settings;
use crate::lifecycle::{Lifecycle, either};
use pando_access::InternalCollections;
use pando_access::{Capped, CollectionOptions};
use pando_base::{Error, ErrorCode, Namespace, Result, limits};
use pando_bson::{DocBuf, RawDoc};
use pando_env::sync::Notify;
use pando_query::matcher::Matcher;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

pub(crate) struct Profiling {
    /// Lets every operation pass without the lock while nothing is profiled.
    any: AtomicBool,
    levels: Mutex<BTreeMap<String, i32>>,
    /// Which operations of a database are slow enough, in place of `slowms` and `sampleRate`.
    filters: Mutex<BTreeMap<String, Arc<Matcher>>>,
    any_filter: AtomicBool,
    queue: Mutex<VecDeque<(String, DocBuf)>>,
    queued: Notify,
}

impl Default for Profiling {
    fn default() -> Profiling {
        Profiling {
            any: AtomicBool::new(false),
            levels: Mutex::default(),
            filters: Mutex::default(),
            any_filter: AtomicBool::new(false),
            queue: Mutex::default(),
            queued: Notify::default(),
        }
    }
}

impl Profiling {
    pub(crate) fn level(&self, db: &str) -> i32 {
        if !self.any.load(Relaxed) {
            return 0;
        }
        self.levels.lock().unwrap_or_else(PoisonError::into_inner).get(db).copied().unwrap_or(0)
    }
    pub(crate) fn set_level(&self, db: &str, level: i32) {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        if level == 0 {
            levels.remove(db);
        } else {
            levels.insert(db.to_owned(), level);
        }
        self.any.store(!levels.is_empty(), Relaxed);
    }
    pub(crate) fn filter(&self, db: &str) -> Option<Arc<Matcher>> {
        if !self.any_filter.load(Relaxed) {
            return None;
        }
        self.filters.lock().unwrap_or_else(PoisonError::into_inner).get(db).cloned()
    }
    /// Sets a database's filter or takes it away.
    pub(crate) fn set_filter(&self, db: &str, filter: Option<Matcher>) -> Result<()> {
        let mut filters = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        match filter {
            None => drop(filters.remove(db)),
            Some(_) if filters.len() >= limits::PROFILE_FILTERS_MAX && !filters.contains_key(db) => {
                return Err(Error::new(
                    ErrorCode::ExceededMemoryLimit,
                    format!(
                        "at most {} databases have a profile filter; unset one first",
                        limits::PROFILE_FILTERS_MAX
                    ),
                ));
            }
            Some(filter) => drop(filters.insert(db.to_owned(), Arc::new(filter))),
        }
        self.any_filter.store(!filters.is_empty(), Relaxed);
        Ok(())
    }
}

impl Profiling {
    /// Queues an entry for `<db>.system.profile`. A failure is not the profiled operation's failure: the entry is
    /// lost.
    pub(crate) fn write(&self, db: &str, entry: DocBuf) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() < limits::PROFILE_QUEUE_MAX {
            queue.push_back((db.to_owned(), entry));
            self.queued.bump();
        }
    }
}

/// Inserts one entry; the collection (capped, not replicated) is made when it is missing.
async fn insert(internal: &InternalCollections, db: &str, entry: &RawDoc) -> Result<()> {
    let ns = Namespace::unchecked(db, "system.profile");
    let capped = || {
        let capped = Some(Capped::new(limits::PROFILE_BYTES, None));
        CollectionOptions { capped, ..CollectionOptions::default() }
    };
    internal.append(&ns, entry, capped).await
}

/// Writes queued entries as they come.
pub(crate) async fn run(settings: Arc<Settings>, lifecycle: Arc<Lifecycle>) {
    let profiling = &settings.profiling;
    loop {
        let version = profiling.queued.version();
        let batch = std::mem::take(&mut *profiling.queue.lock().unwrap_or_else(PoisonError::into_inner));
        for (db, entry) in &batch {
            // See `Profiling::write`.
            let _ = insert(&settings.internal, db, entry).await;
        }
        if batch.is_empty() {
            either(profiling.queued.changed(version), lifecycle.wait_stopping()).await;
        }
        if lifecycle.is_stopping() {
            return;
        }
    }
}
