//! Index filters: for queries of one shape, only the named indexes may be used, and hints count for nothing.
//!
//! They live as long as the collection on this process; changes of indexes leave them alone.

use crate::source::IndexInfo;
use pando_bson::DocBuf;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The indexes a shape may use.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexFilter {
    /// Of the query it was set with, for listings.
    pub query: DocBuf,
    pub sort: DocBuf,
    pub projection: DocBuf,
    pub collation: Option<DocBuf>,
    pub patterns: Vec<DocBuf>,
    pub names: Vec<String>,
}

impl IndexFilter {
    pub(super) fn allows(&self, index: &IndexInfo) -> bool {
        self.names.contains(&index.name) || self.patterns.contains(&index.key_pattern)
    }
}

/// All of a collection.
#[derive(Debug, Default)]
pub struct IndexFilters {
    by_shape: Mutex<BTreeMap<String, Arc<IndexFilter>>>,
    /// Saves most queries from asking for their shape.
    any: AtomicBool,
}

impl IndexFilters {
    pub fn set(&self, shape: String, filter: IndexFilter) {
        self.lock().insert(shape, Arc::new(filter));
        self.any.store(true, Ordering::Release);
    }
    /// The shape is asked for only where there are filters.
    pub fn of(&self, shape: impl FnOnce() -> String) -> Option<Arc<IndexFilter>> {
        self.any.load(Ordering::Acquire).then(|| self.lock().get(&shape()).cloned())?
    }
    pub fn remove(&self, shape: &str) {
        self.lock().remove(shape);
    }
    pub fn clear(&self) {
        self.lock().clear();
    }
    pub fn all(&self) -> Vec<Arc<IndexFilter>> {
        self.lock().values().cloned().collect()
    }
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<IndexFilter>>> {
        self.by_shape.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
