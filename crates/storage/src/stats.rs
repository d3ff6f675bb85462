//! What storage counts and how much it holds (`serverStatus.wiredTiger`: dashboards look for the cache's size there).

use crate::kv::Tree;
use crate::options::Options;
use crate::storage::Storage;
use pando_metrics::{Collector, Counter, Source};

/// Events counted as they happen.
#[derive(Default)]
pub(crate) struct Counters {
    /// Writes that met a key which another transaction writes, or wrote since the snapshot.
    pub(crate) write_conflicts: Counter,
    pub(crate) room_waits: Counter,
    pub(crate) refused: Counter,
    pub(crate) snapshots_given_up: Counter,
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
    /// Writes that met one of somebody else.
    pub fn write_conflicts(&self) -> &Counter {
        &self.store.counters.write_conflicts
    }
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
            room_waits: self.store.counters.room_waits.get(),
            refused: self.store.counters.refused.get(),
            snapshots_given_up: self.store.counters.snapshots_given_up.get(),
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

impl Source for Storage {
    fn collect(&self, to: &mut Collector<'_>) {
        let (s, opts) = (self.stats(), &self.store.opts);
        to.within("cache", |to| {
            const UNIT: &str = "bytes";
            let in_memory = s.memtable_bytes as u64 + s.cached_bytes + s.pinned_bytes;
            to.gauge("maximum bytes configured", opts.memory(), UNIT, "Memory that storage may use")
                .gauge("bytes currently in the cache", in_memory, UNIT, "Memory that storage uses")
                .gauge(
                    "tracked dirty bytes in the cache",
                    s.memtable_bytes,
                    UNIT,
                    "Rows that no table on disk has yet",
                );
        });
        to.within("pandodb", |to| {
            for (name, t) in [("records", s.records), ("indexes", s.indexes), ("history", s.history)] {
                to.labelled("tree", name, |to| t.collect(to));
            }
            collect_memory(&s, opts, to);
            collect_log(&s, to);
        });
    }
}

impl Source for TableStats {
    fn collect(&self, to: &mut Collector<'_>) {
        to.gauge("tables", self.tables, "tables", "Tables on disk")
            .gauge("runs", self.runs, "runs", "Overlapping runs of tables that a read may have to look into")
            .gauge("bytes", self.bytes, "bytes", "Size of the tables on disk");
    }
}

fn collect_memory(s: &Stats, opts: &Options, to: &mut Collector<'_>) {
    to.gauge("cachedBytes", s.cached_bytes, "bytes", "Blocks of tables in the cache")
        .gauge("cachedBytesMax", opts.cache_bytes, "bytes", "Bound of the cache")
        .gauge("pinnedBytes", s.pinned_bytes, "bytes", "What open tables keep in memory beside the cache")
        .gauge("memtableBytes", s.memtable_bytes, "bytes", "Rows in memory tables")
        .gauge(
            "memtableBytesMax",
            s.memtable_bytes_max,
            "bytes",
            "Rows in memory tables above which a checkpoint is due",
        )
        .counter("roomWaits", s.room_waits, "waits", "Waits of writers for room in memory tables")
        .counter(
            "refusedUnits",
            s.refused,
            "units of work",
            "Units of work refused for want of room in memory tables",
        )
        .gauge("historyBytesMax", opts.history_bytes_max, "bytes", "Bound of the history on disk")
        .counter(
            "snapshotsGivenUp",
            s.snapshots_given_up,
            "times",
            "Times that the oldest snapshots were given up because the history was full",
        );
}

fn collect_log(s: &Stats, to: &mut Collector<'_>) {
    to.gauge("logBytes", s.log_bytes, "bytes", "Size of the log on disk")
        .gauge("logBytesMax", s.log_bytes_max, "bytes", "Size of the log from which its oldest files go")
        .gauge("logFiles", s.log_files, "files", "Files of the log")
        .gauge("logRecentBytes", s.log_recent_bytes, "bytes", "Log entries in memory")
        .gauge("openSlots", s.open_slots, "slots", "Reserved groups of timestamps that are still open")
        .counter("checkpoints", s.checkpoints, "checkpoints", "Checkpoints since the data was created");
}
