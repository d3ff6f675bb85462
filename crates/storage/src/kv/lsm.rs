//! Tables by the `lsm-tree` crate; every call into it is in this file and in `run.rs`, which reads their blocks.
//!
//! What is used: its table files, block cache, levels and compaction. What is not: its memtables (ours keep
//! versions and can be flushed up to a timestamp), its sequence numbers as versions, its garbage collection of
//! versions. A run is written by handing the crate a sorted stream and registering the tables it made; for the
//! crate each run has one sequence number, above all earlier ones, and only the newest entry of a key counts.

use super::block;
use super::long::{self, KeyCut};
use super::manifest;
use super::run::{Blocks, RunWalk, above, below};
use super::sealed;
use super::walk::Walk;
use super::{Gc, Kv, KvBulk, KvIter, RunRow, Tree, TreeStats};
use crate::damage::damaged;
use crate::options::Options;
use crate::row;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use lsm_tree::compaction::{CompactionStrategy, Leveled};
use lsm_tree::config::{BlockSizePolicy, CompressionPolicy, PinningPolicy, RestartIntervalPolicy};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, Config, DescriptorTable, GlobalTableId, InternalValue,
    SequenceNumberCounter, Slice, ValueType,
};
use pando_base::panics::poisoned;
use pando_base::sync::Mutex;
use pando_base::{Error, HashMap, Result, limits};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, RwLock};

/// Reads want the newest of everything; the crate reserves the top bit.
const NEWEST: u64 = u64::MAX >> 1;

pub(crate) struct LsmKv {
    /// By number.
    trees: Vec<lsm_tree::Tree>,
    cache: Arc<Cache>,
    blocks: Arc<Blocks>,
    seqno: SequenceNumberCounter,
    gc: Arc<RwLock<Gc>>,
    compacting: Mutex<()>,
    /// Held while a tree's list of tables is replaced from outside a compaction.
    registering: Arc<Mutex<()>>,
    /// Dead idents whose whole tables are already gone.
    swept: Mutex<BTreeSet<u32>>,
    /// Which idents the tables have rows of, as far as known.
    idents: RwLock<HashMap<GlobalTableId, Arc<[u32]>>>,
}

#[cold]
pub(super) fn engine_error(e: lsm_tree::Error) -> Error {
    match e {
        lsm_tree::Error::Io(e) => Error::from(e).context("table file"),
        lsm_tree::Error::ChecksumMismatch { .. } => damaged("a block does not match its checksum"),
        lsm_tree::Error::Sealed(lsm_tree::seal::UNKNOWN) => sealed::key_missing(),
        lsm_tree::Error::Sealed(why) => damaged(format!("a block cannot be decrypted: {why}")),
        other => damaged(format!("{other:?}")),
    }
}

/// Drops rows that nobody can ask for, during compaction.
struct GcFactory {
    tree: Tree,
    cut: KeyCut,
    gc: Arc<RwLock<Gc>>,
}

struct GcFilter {
    tree: Tree,
    cut: KeyCut,
    gc: Gc,
}

impl Factory for GcFactory {
    fn name(&self) -> &str {
        "gc"
    }
    fn make_filter(&self, _ctx: &Context) -> Box<dyn CompactionFilter> {
        let gc = self.gc.read().unwrap_or_else(poisoned).clone();
        Box::new(GcFilter { tree: self.tree, cut: self.cut, gc })
    }
}

impl CompactionFilter for GcFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _ctx: &Context) -> lsm_tree::Result<Verdict> {
        let key = item.key();
        let Some(ident) = long::owner(row::ident_of(key)) else { return Ok(Verdict::Keep) };
        if !self.gc.dead.is_empty() && self.gc.dead.contains(&ident) {
            return Ok(Verdict::Destroy);
        }
        // Left from when all records lay in one tree.
        if matches!(self.tree, Tree::Records(_)) && Tree::of(ident) != self.tree {
            return Ok(Verdict::Destroy);
        }
        let part = long::part_of(key, self.cut);
        if part == long::Part::Inner {
            return Ok(Verdict::Keep);
        }
        if self.tree == Tree::History {
            let dead = long::stop_of(part, key, &item.value()?) <= self.gc.below;
            return Ok(if dead { Verdict::Destroy } else { Verdict::Keep });
        }
        match row::header(&item.value()?) {
            // Not `Destroy`: an older row of this key may lie in a lower level.
            Ok((ts, true)) if ts <= self.gc.below => Ok(Verdict::Remove),
            _ => Ok(Verdict::Keep),
        }
    }
}

/// How a tree moves and merges. Where its newest runs are small (a flush wrote to many trees), more of them wait for each
/// other, since what is below them is merged as a whole; levels are of the same size either way.
fn strategy(tree: &lsm_tree::Tree) -> Arc<dyn CompactionStrategy + Send + Sync> {
    let version = tree.current_version();
    let newest = version.iter_levels().next().into_iter().flat_map(|level| level.iter());
    let bytes: u64 = newest.flat_map(|run| run.iter()).map(|table| table.metadata.file_size).sum();
    let (tables, table_bytes) =
        if bytes < limits::TABLE_BYTES { (8, limits::TABLE_BYTES / 2) } else { (4, limits::TABLE_BYTES) };
    Arc::new(Leveled::default().with_l0_threshold(tables).with_table_target_size(table_bytes))
}

/// Bytes of a data block: index entries are short and wanted one by one, records are long and often scanned.
fn block_bytes(tree: Tree) -> u32 {
    match tree {
        Tree::Records(_) => 32 << 10,
        Tree::Indexes | Tree::History => 4 << 10,
    }
}

impl LsmKv {
    /// `fresh`: nothing was ever written to this tree.
    pub(crate) fn open(dir: &Path, opts: &Options, fresh: impl Fn(Tree) -> bool) -> Result<LsmKv> {
        let (cut, blocks) = (opts.key_cut, sealed::kind(opts.keys.as_ref()));
        for tree in Tree::ALL {
            manifest::check(&dir.join(tree.name()), fresh(tree))?;
        }
        let seqno = SequenceNumberCounter::default();
        let visible = SequenceNumberCounter::default();
        let cache = Arc::new(Cache::with_capacity_bytes(opts.cache_bytes as u64));
        let files = Arc::new(DescriptorTable::new(limits::TABLE_FILES_OPEN_MAX));
        let gc: Arc<RwLock<Gc>> = Arc::default();
        let open = |tree: Tree| -> Result<lsm_tree::Tree> {
            let name = tree.name();
            let factory: Arc<dyn Factory> = Arc::new(GcFactory { tree, cut, gc: gc.clone() });
            let config = Config::new(dir.join(name), seqno.clone(), visible.clone())
                .use_cache(cache.clone())
                .use_descriptor_table(Some(files.clone()))
                .data_block_size_policy(BlockSizePolicy::all(block_bytes(tree)))
                .data_block_restart_interval_policy(RestartIntervalPolicy::all(block::restart_interval(tree)))
                .data_block_compression_policy(CompressionPolicy::all(blocks))
                .index_block_compression_policy(CompressionPolicy::all(blocks))
                .index_block_pinning_policy(PinningPolicy::all(true))
                .filter_block_pinning_policy(PinningPolicy::all(true))
                .index_block_partitioning_policy(PinningPolicy::all(false))
                .filter_block_partitioning_policy(PinningPolicy::all(false))
                .with_compaction_filter_factory(Some(factory));
            match config.open().map_err(|e| engine_error(e).context(dir.join(name).display()))? {
                AnyTree::Standard(tree) => Ok(tree),
                AnyTree::Blob(_) => Err(Error::internal("tables of an unknown kind")),
            }
        };
        let trees = Tree::ALL.into_iter().map(open).collect::<Result<Vec<_>>>()?;
        for table in trees.iter().flat_map(|t| t.current_version().iter_tables().cloned().collect::<Vec<_>>())
        {
            let sealed = table.metadata.data_block_compression.is_sealed();
            sealed::check_kind(sealed, opts.keys.is_some(), &table.path)?;
        }
        let highest = trees.iter().filter_map(|t| t.get_highest_persisted_seqno()).max().unwrap_or(0);
        seqno.set(highest + 2);
        visible.set(highest + 2);
        let (compacting, swept) = (Mutex::default(), Mutex::default());
        Ok(LsmKv {
            trees,
            blocks: Arc::new(Blocks::new(cache.clone(), files)),
            cache,
            seqno,
            gc,
            compacting,
            registering: Arc::default(),
            swept,
            idents: RwLock::default(),
        })
    }
    fn tree(&self, tree: Tree) -> &lsm_tree::Tree {
        &self.trees[usize::from(tree.number())]
    }
    /// Drops the tables that hold nothing but dead idents' rows. A table of a checkpoint holds rows of many collections, so each
    /// table is asked for all its idents.
    fn sweep(&self, gc: &Gc) -> Result<()> {
        let mut swept = self.swept.lock().unwrap_or_else(poisoned);
        if *swept == gc.dead {
            return Ok(());
        }
        let mut dropped = false;
        for tree in &self.trees {
            for (low, high) in self.dead_ranges(tree, &gc.dead)? {
                tree.drop_range::<&[u8], _>(&low[..]..=&high[..]).map_err(engine_error)?;
                dropped = true;
            }
        }
        if dropped {
            self.forget_gone_tables();
        }
        *swept = gc.dead.clone();
        Ok(())
    }
    /// Key ranges, each of which contains some tables and only such whose idents are all dead. Neighbours are put together,
    /// since the list of tables is written anew for each range.
    fn dead_ranges(&self, tree: &lsm_tree::Tree, dead: &BTreeSet<u32>) -> Result<Vec<(Slice, Slice)>> {
        let version = tree.current_version();
        let mut tables = Vec::new();
        for table in version.iter_tables() {
            let all_dead = self
                .idents_of(tree, table)?
                .iter()
                .all(|i| long::owner(*i).is_some_and(|i| dead.contains(&i)));
            let range = &table.metadata.key_range;
            tables.push((range.min().clone(), range.max().clone(), all_dead));
        }
        tables.sort();
        let alive: Vec<_> = tables.iter().filter(|(_, _, all_dead)| !all_dead).collect();
        let spares_the_living = |low: &Slice, high: &Slice| {
            let from = alive.partition_point(|(min, ..)| min < low);
            !alive[from..].iter().take_while(|(min, ..)| min <= high).any(|(_, max, _)| max <= high)
        };
        let mut ranges: Vec<(Slice, Slice)> = Vec::new();
        for (min, max, _) in tables.iter().filter(|(_, _, all_dead)| *all_dead) {
            if let Some((low, high)) = ranges.last_mut() {
                let longer = max.clone().max(high.clone());
                if spares_the_living(low, &longer) {
                    *high = longer;
                    continue;
                }
            }
            if spares_the_living(min, max) {
                ranges.push((min.clone(), max.clone()));
            }
        }
        Ok(ranges)
    }
    /// The idents that a table has rows of, ascending: noted when a run is written, read once from what compactions made.
    fn idents_of(&self, tree: &lsm_tree::Tree, table: &lsm_tree::Table) -> Result<Arc<[u32]>> {
        let id = GlobalTableId::from((tree.id(), table.id()));
        if let Some(known) = self.idents.read().unwrap_or_else(poisoned).get(&id) {
            return Ok(known.clone());
        }
        let (mut found, mut from) = (Vec::new(), 0u32);
        loop {
            let low = from.to_be_bytes();
            let ends = (Bound::Included(Slice::from(&low[..])), Bound::Unbounded);
            let walk = RunWalk::new(self.blocks.clone(), tree.id(), std::slice::from_ref(table), false, ends);
            let mut walk: KvIter = Box::new(Walk::new(vec![walk], false));
            let Some(row) = walk.next() else { break };
            let ident = row::ident_of(&row?.0);
            found.push(ident);
            match ident.checked_add(1) {
                Some(next) => from = next,
                None => break,
            }
        }
        let found: Arc<[u32]> = found.into();
        self.idents.write().unwrap_or_else(poisoned).insert(id, found.clone());
        Ok(found)
    }
    /// `idents` are those of the rows that `tables` were made of, ascending.
    fn note_idents(&self, tree: &lsm_tree::Tree, tables: &[lsm_tree::Table], idents: &[u32]) {
        let mut known = self.idents.write().unwrap_or_else(poisoned);
        for table in tables {
            let range = &table.metadata.key_range;
            let from = idents.partition_point(|i| *i < row::ident_of(range.min()));
            let to = idents.partition_point(|i| *i <= row::ident_of(range.max()));
            known.insert(GlobalTableId::from((tree.id(), table.id())), idents[from..to].into());
        }
    }
    fn forget_gone_tables(&self) {
        let mut here = BTreeSet::new();
        for tree in &self.trees {
            let version = tree.current_version();
            here.extend(version.iter_tables().map(|t| GlobalTableId::from((tree.id(), t.id()))));
        }
        self.blocks.retain(|id| here.contains(id));
        self.idents.write().unwrap_or_else(poisoned).retain(|id, _| here.contains(id));
    }
    fn set_gc(&self, gc: &Gc) {
        *self.gc.write().unwrap_or_else(poisoned) = gc.clone();
    }
}

impl Kv for LsmKv {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Slice>> {
        self.tree(tree).get(key, NEWEST).map_err(|e| {
            let version = self.tree(tree).current_version();
            let holds = |t: &&lsm_tree::Table| t.metadata.key_range.contains_key(key);
            let names: Vec<_> =
                version.iter_tables().filter(holds).map(|t| t.path.display().to_string()).collect();
            engine_error(e).context(format!("table file {}", names.join(" or ")))
        })
    }

    fn range(&self, tree: Tree, lower: Bound<&[u8]>, upper: Bound<&[u8]>, backward: bool) -> KvIter {
        let engine = self.tree(tree);
        let version = engine.current_version();
        let (start, end) = if backward { (upper, lower) } else { (lower, upper) };
        let (start, end) = (start.map(Slice::from), end.map(Slice::from));
        let mut sources = Vec::new();
        for run in version.iter_levels().flat_map(|level| level.iter()) {
            let first = run.partition_point(|t| below(t.metadata.key_range.max(), lower));
            let last = run.partition_point(|t| !above(t.metadata.key_range.min(), upper));
            if first < last {
                let (blocks, ends) = (self.blocks.clone(), (start.clone(), end.clone()));
                sources.push(RunWalk::new(blocks, engine.id(), &run[first..last], backward, ends));
            }
        }
        Box::new(Walk::new(sources, backward))
    }

    fn write_run(&self, tree: Tree, rows: &mut dyn Iterator<Item = Result<RunRow>>) -> Result<()> {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let engine = self.tree(tree);
        let seqno = self.seqno.next();
        let mut failure = None;
        let mut idents: Vec<u32> = Vec::new();
        let mut note = |key: &[u8]| {
            let ident = row::ident_of(key);
            if idents.last() != Some(&ident) {
                idents.push(ident);
            }
        };
        let stream = std::iter::from_fn(|| match rows.next()? {
            Ok((key, Some(value))) => {
                note(&key);
                Some(Ok(InternalValue::from_components(key, value, seqno, ValueType::Value)))
            }
            Ok((key, None)) => {
                note(&key);
                Some(Ok(InternalValue::new_tombstone(key, seqno)))
            }
            Err(e) => {
                failure = Some(e);
                Some(Err(lsm_tree::Error::Unrecoverable))
            }
        });
        let made = engine.flush_to_tables(stream);
        if let Some(e) = failure {
            return Err(e);
        }
        if let Some((tables, blobs)) = made.map_err(engine_error)? {
            self.note_idents(engine, &tables, &idents);
            let older = self.seqno.get();
            let _one = self.registering.lock().unwrap_or_else(poisoned);
            engine.register_tables(&tables, blobs.as_deref(), None, &[], older).map_err(engine_error)?;
        }
        Ok(())
    }

    fn compact(&self, gc: &Gc) -> Result<bool> {
        let _one = self.compacting.lock().unwrap_or_else(poisoned);
        self.set_gc(gc);
        self.sweep(gc)?;
        for tree in &self.trees {
            let before = tree.current_version().id();
            tree.compact(strategy(tree), self.seqno.get()).map_err(engine_error)?;
            if tree.current_version().id() != before {
                self.forget_gone_tables();
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn compact_all(&self, tree: Tree, gc: &Gc) -> Result<()> {
        let _one = self.compacting.lock().unwrap_or_else(poisoned);
        self.set_gc(gc);
        self.tree(tree).major_compact(limits::TABLE_BYTES, self.seqno.get()).map_err(engine_error)?;
        self.forget_gone_tables();
        Ok(())
    }

    fn has_rows(&self, tree: Tree, ident: u32) -> Result<bool> {
        let engine = self.tree(tree);
        let version = engine.current_version();
        for table in version.iter_tables() {
            let range = &table.metadata.key_range;
            let reaches = (row::ident_of(range.min())..=row::ident_of(range.max())).contains(&ident);
            if reaches && self.idents_of(engine, table)?.binary_search(&ident).is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn stats(&self, tree: Tree) -> TreeStats {
        let engine = self.tree(tree);
        let version = engine.current_version();
        TreeStats {
            tables: version.table_count(),
            runs: version.iter_levels().map(|level| level.iter().count()).sum(),
            bytes: engine.disk_space(),
        }
    }

    fn memory(&self) -> (u64, u64) {
        let pinned = self.trees.iter().map(|t| t.pinned_filter_size() + t.pinned_block_index_size());
        (self.cache.size(), (pinned.sum::<usize>() + self.blocks.pinned_bytes()) as u64)
    }

    fn pin(&self, each: &mut dyn FnMut(String) -> Result<()>) -> Result<()> {
        let _no_compaction = self.compacting.lock().unwrap_or_else(poisoned);
        let _one = self.registering.lock().unwrap_or_else(poisoned);
        for (tree, engine) in Tree::ALL.into_iter().zip(&self.trees) {
            let (dir, version) = (format!("tables/{}", tree.name()), engine.current_version());
            for table in version.iter_tables() {
                each(format!("{dir}/tables/{}", table.id()))?;
            }
            each(format!("{dir}/v{}", version.id()))?;
            each(format!("{dir}/current"))?;
        }
        Ok(())
    }

    fn bulk(&self, tree: Tree) -> Result<Box<dyn KvBulk>> {
        Ok(Box::new(Bulk {
            registering: self.registering.clone(),
            tree: self.tree(tree).clone(),
            seqno: self.seqno.next(),
            counter: self.seqno.clone(),
            rows: Vec::new(),
            bytes: 0,
            tables: Vec::new(),
        }))
    }
}

/// Tables made one after the other and registered together.
struct Bulk {
    tree: lsm_tree::Tree,
    registering: Arc<Mutex<()>>,
    seqno: u64,
    counter: SequenceNumberCounter,
    rows: Vec<(Slice, Slice)>,
    bytes: usize,
    tables: Vec<lsm_tree::Table>,
}

impl Bulk {
    fn make_table(&mut self) -> Result<()> {
        let seqno = self.seqno;
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows).into_iter();
        let stream = rows.map(|(k, v)| Ok(InternalValue::from_components(k, v, seqno, ValueType::Value)));
        if let Some((tables, _)) = self.tree.flush_to_tables(stream).map_err(engine_error)? {
            self.tables.extend(tables);
        }
        Ok(())
    }
}

impl KvBulk for Bulk {
    fn push(&mut self, key: Slice, value: Slice) -> Result<()> {
        self.bytes += key.len() + value.len();
        self.rows.push((key, value));
        if self.bytes >= limits::BULK_TABLE_BYTES { self.make_table() } else { Ok(()) }
    }
    fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.rows.is_empty() {
            self.make_table()?;
        }
        // From here on the files may be part of the tree, whatever is answered.
        let tables = std::mem::take(&mut self.tables);
        if tables.is_empty() {
            return Ok(());
        }
        let _one = self.registering.lock().unwrap_or_else(poisoned);
        self.tree.register_tables(&tables, None, None, &[], self.counter.get()).map_err(engine_error)
    }
}

impl Drop for Bulk {
    /// Given up: the files made so far go.
    fn drop(&mut self) {
        for table in self.tables.drain(..) {
            // What cannot be removed now is found by the next open.
            let _ = std::fs::remove_file(&*table.path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::bytes::Bytes;
    use crate::options::Backend;
    use std::sync::mpsc;
    use std::time::Duration;

    /// Whoever changes a tree's list of tables writes and syncs some files, which may take as long as the disk likes.
    #[test]
    fn readers_do_not_wait_for_whoever_changes_the_list_of_tables() {
        let dir = std::env::temp_dir().join(format!("pando-lsm-readers-{}", std::process::id()));
        let opts = Options { backend: Backend::Lsm, ..Options::default() };
        let kv = LsmKv::open(&dir, &opts, |_| true).unwrap();
        let row = (row::key(7, b"a"), Some(row::value(1, Some(&Bytes::from(&b"there"[..])))));
        kv.write_run(Tree::Indexes, &mut [Ok(row)].into_iter()).unwrap();

        let (told, read) = mpsc::channel();
        std::thread::scope(|scope| {
            let changing = kv.tree(Tree::Indexes).get_version_history_lock();
            scope.spawn(|| {
                let one = kv.get(Tree::Indexes, &row::key(7, b"a")).unwrap();
                let all = kv.range(Tree::Indexes, Bound::Unbounded, Bound::Unbounded, false).count();
                told.send((one.is_some(), all)).unwrap();
            });
            let seen = read.recv_timeout(Duration::from_secs(30));
            // Before anything fails: whoever waits would wait for ever.
            drop(changing);
            assert_eq!(seen, Ok((true, 1)), "read while a list of tables is changed");
        });
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
