//! What a caller chooses when opening, and what it can ask afterwards.

use pando_base::limits;

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
    /// Replaced versions kept on disk; beyond it the oldest snapshots are given up.
    pub history_bytes_max: u64,
    /// Part of a replica set: the caller moves stable and oldest. Otherwise both follow commits.
    pub replicated: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            backend: Backend::Lsm,
            cache_bytes: limits::STORAGE_CACHE_BYTES,
            memtable_bytes: limits::STORAGE_MEMTABLE_BYTES,
            oplog_bytes_max: limits::OPLOG_BYTES,
            history_bytes_max: limits::STORAGE_HISTORY_BYTES_MAX,
            replicated: true,
        }
    }
}
