//! Figures for `serverStatus` and metrics.

use crate::kv::Tree;
use crate::storage::Storage;
use std::sync::atomic::{AtomicU64, Ordering};

/// Events counted as they happen.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) room_waits: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) snapshots_given_up: AtomicU64,
}

/// One tree of tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableStats {
    pub tables: usize,
    /// Overlapping runs that a read may have to look into.
    pub runs: usize,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Stats {
    pub records: TableStats,
    pub indexes: TableStats,
    pub history: TableStats,
    /// Blocks of tables in memory: those that the cache may give up, and what every open table keeps.
    pub cached_bytes: u64,
    pub pinned_bytes: u64,
    /// Rows in memory, and the budget above which a checkpoint is due.
    pub memtable_bytes: usize,
    pub memtable_bytes_max: usize,
    /// Writers that had to wait for room, and units refused because there was none.
    pub room_waits: u64,
    pub refused: u64,
    /// How often the oldest snapshots were given up because the history had outgrown its bound.
    pub snapshots_given_up: u64,
    pub log_bytes: u64,
    pub log_bytes_max: u64,
    pub log_files: usize,
    /// Entries of the log that are in memory.
    pub log_recent_bytes: usize,
    /// Files dropped from the front of the log.
    pub log_files_dropped: u64,
    /// Reserved groups of timestamps that are still open.
    pub open_slots: usize,
    /// Dropped idents whose rows stay because somebody may still look or roll back behind the drop.
    pub drop_pending: usize,
    pub checkpoints: u64,
}

impl Storage {
    pub fn stats(&self) -> Stats {
        let (open_slots, log_recent_bytes) = {
            let state = self.log().0.state();
            (state.open_groups(), state.recent_bytes)
        };
        let (drop_pending, checkpoints) = {
            let meta = self.store.meta();
            (meta.dropped.len(), meta.epoch)
        };
        let (cached_bytes, pinned_bytes) = self.store.kv.memory();
        let tree = |t: Tree| {
            let s = self.store.kv.stats(t);
            TableStats { tables: s.tables, runs: s.runs, bytes: s.bytes }
        };
        // A read of records looks into one tree.
        let records = Tree::records().map(tree).fold(TableStats::default(), |a, b| TableStats {
            tables: a.tables + b.tables,
            runs: a.runs.max(b.runs),
            bytes: a.bytes + b.bytes,
        });
        Stats {
            records,
            indexes: tree(Tree::Indexes),
            history: tree(Tree::History),
            cached_bytes,
            pinned_bytes,
            memtable_bytes: self.store.mem.bytes(),
            memtable_bytes_max: self.store.opts.memtable_bytes,
            room_waits: self.store.counters.room_waits.load(Ordering::Relaxed),
            refused: self.store.counters.refused.load(Ordering::Relaxed),
            snapshots_given_up: self.store.counters.snapshots_given_up.load(Ordering::Relaxed),
            log_bytes: self.log().bytes(),
            log_bytes_max: self.log().bytes_max(),
            log_files: self.log().0.files.count(),
            log_recent_bytes,
            log_files_dropped: self.log().0.files.dropped(),
            open_slots,
            drop_pending,
            checkpoints,
        }
    }
}
