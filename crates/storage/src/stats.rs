//! Figures for `serverStatus` and metrics.

use crate::kv::Tree;
use crate::storage::Storage;

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
    /// Rows in memory, and the budget above which a checkpoint is due.
    pub memtable_bytes: usize,
    pub memtable_bytes_max: usize,
    pub log_bytes: u64,
    pub log_files: usize,
    /// Reserved groups of timestamps that are still open.
    pub open_slots: usize,
    pub checkpoints: u64,
}

impl Storage {
    pub fn stats(&self) -> Stats {
        let tree = |t: Tree| {
            let s = self.store.kv.stats(t);
            TableStats { tables: s.tables, runs: s.runs, bytes: s.bytes }
        };
        Stats {
            records: tree(Tree::Records),
            indexes: tree(Tree::Indexes),
            history: tree(Tree::History),
            memtable_bytes: self.store.mem.bytes(),
            memtable_bytes_max: self.store.opts.memtable_bytes,
            log_bytes: self.log().bytes(),
            log_files: self.log().0.files.count(),
            open_slots: self.log().0.state().open_groups(),
            checkpoints: self.store.meta().epoch,
        }
    }
}
