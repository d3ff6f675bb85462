//! What a caller chooses when opening, and what it can ask afterwards.

pub use crate::kv::long::KeyCut;
use pando_base::limits;
use pando_encryption::Keys;
use std::sync::Arc;

/// Which tables lie below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// Log-structured tables in files of the data directory.
    Lsm,
    /// Ordered maps, saved through [`pando_env::Disk`]: repeatable, without threads; for simulation and tests.
    Mem,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub backend: Backend,
    /// Blocks of tables kept in memory.
    pub cache_bytes: usize,
    /// Rows waiting to be flushed; a checkpoint is due above it.
    pub memtable_bytes: usize,
    /// Old log segments go once the log is larger than this.
    pub oplog_bytes_max: u64,
    /// Bytes of one file of the logs; `None` = what fits the size of the log.
    pub log_segment_bytes: Option<u64>,
    /// Replaced versions kept on disk; beyond it the oldest snapshots are given up.
    pub history_bytes_max: u64,
    /// Part of a replica set: the caller moves stable and oldest. Otherwise both follow commits.
    pub replicated: bool,
    /// Where long keys are cut. Only tests cut shorter, so that many small keys behave as long ones; data must always be
    /// opened with what it was written with.
    pub key_cut: KeyCut,
    /// With which tables and logs are encrypted; a folder is from its first opening on, or never.
    pub keys: Option<Arc<Keys>>,
}

impl Options {
    /// Splits one bound on memory (`--wiredTigerCacheSizeGB`) between cached blocks and rows waiting to be flushed,
    /// which may grow to twice their budget before writers wait.
    pub fn with_memory(self, bytes: usize) -> Options {
        let (min, max) = (limits::STORAGE_MEMTABLE_BYTES_MIN, limits::STORAGE_MEMTABLE_BYTES);
        let memtable_bytes = (bytes / 8).clamp(min, max);
        let cache_bytes = bytes.saturating_sub(2 * memtable_bytes).max(limits::STORAGE_CACHE_BYTES_MIN);
        Options { cache_bytes, memtable_bytes, ..self }
    }
    /// The bound that [`Options::with_memory`] splits.
    pub fn memory(&self) -> usize {
        self.cache_bytes + 2 * self.memtable_bytes
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            backend: Backend::Lsm,
            cache_bytes: limits::STORAGE_CACHE_BYTES,
            memtable_bytes: limits::STORAGE_MEMTABLE_BYTES,
            oplog_bytes_max: limits::OPLOG_BYTES,
            log_segment_bytes: None,
            history_bytes_max: limits::STORAGE_HISTORY_BYTES_MAX,
            replicated: true,
            key_cut: KeyCut::TABLES,
            keys: None,
        }
    }
}
