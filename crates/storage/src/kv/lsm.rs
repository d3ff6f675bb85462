//! Tables by the `lsm-tree` crate; every call into it is in this file.
//!
//! What is used: its table files, block cache, levels and compaction. What is not: its memtables (ours keep
//! versions and can be flushed up to a timestamp), its sequence numbers as versions, its garbage collection of
//! versions. A run is written by handing the crate a sorted stream and registering the tables it made; for the
//! crate each run has one sequence number, above all earlier ones, and only the newest entry of a key counts.

use super::walk::{Entry, Source, Walk};
use super::{Gc, Kv, KvBulk, KvIter, RunRow, Tree, TreeStats};
use crate::row;
use lsm_tree::compaction::filter::{CompactionFilter, Context, Factory, ItemAccessor, Verdict};
use lsm_tree::compaction::{CompactionStrategy, Leveled};
use lsm_tree::config::{BlockSizePolicy, CompressionPolicy, PinningPolicy};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, CompressionType, Config, DescriptorTable, InternalValue,
    SequenceNumberCounter, Slice, ValueType,
};
use pando_base::{Error, ErrorCode, Result, limits};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Reads want the newest of everything; the crate reserves the top bit.
const NEWEST: u64 = u64::MAX >> 1;

pub(crate) struct LsmKv {
    trees: [lsm_tree::Tree; 3],
    cache: Arc<Cache>,
    seqno: SequenceNumberCounter,
    gc: Arc<RwLock<Gc>>,
    strategies: [Arc<dyn CompactionStrategy + Send + Sync>; 3],
    compacting: Mutex<()>,
    /// Dead idents whose whole tables are already gone.
    swept: Mutex<BTreeSet<u32>>,
}

#[cold]
fn engine_error(e: lsm_tree::Error) -> Error {
    match e {
        lsm_tree::Error::Io(e) => Error::from(e).context("table file"),
        other => Error::new(ErrorCode::InternalError, format!("table file: {other:?}")),
    }
}

/// Drops rows that nobody can ask for, during compaction.
struct GcFactory {
    tree: Tree,
    gc: Arc<RwLock<Gc>>,
}

struct GcFilter {
    tree: Tree,
    gc: Gc,
}

impl Factory for GcFactory {
    fn name(&self) -> &str {
        "gc"
    }
    fn make_filter(&self, _ctx: &Context) -> Box<dyn CompactionFilter> {
        let gc = self.gc.read().unwrap_or_else(PoisonError::into_inner).clone();
        Box::new(GcFilter { tree: self.tree, gc })
    }
}

impl CompactionFilter for GcFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _ctx: &Context) -> lsm_tree::Result<Verdict> {
        let key = item.key();
        if !self.gc.dead.is_empty() && self.gc.dead.contains(&row::ident_of(key)) {
            return Ok(Verdict::Destroy);
        }
        if self.tree == Tree::History {
            let dead = row::stop_of(key) <= self.gc.below;
            return Ok(if dead { Verdict::Destroy } else { Verdict::Keep });
        }
        match row::header(&item.value()?) {
            // Not `Destroy`: an older row of this key may lie in a lower level.
            Ok((ts, true)) if ts <= self.gc.below => Ok(Verdict::Remove),
            _ => Ok(Verdict::Keep),
        }
    }
}

/// Bytes of a data block: index entries are short and wanted one by one, records are long and often scanned.
fn block_bytes(tree: Tree) -> u32 {
    match tree {
        Tree::Records => 16 << 10,
        Tree::Indexes | Tree::History => 4 << 10,
    }
}

impl LsmKv {
    pub(crate) fn open(dir: &Path, cache_bytes: usize) -> Result<LsmKv> {
        let seqno = SequenceNumberCounter::default();
        let visible = SequenceNumberCounter::default();
        let cache = Arc::new(Cache::with_capacity_bytes(cache_bytes as u64));
        let files = Arc::new(DescriptorTable::new(limits::TABLE_FILES_OPEN_MAX));
        let gc: Arc<RwLock<Gc>> = Arc::default();
        let open = |tree: Tree, name: &str| -> Result<lsm_tree::Tree> {
            let factory: Arc<dyn Factory> = Arc::new(GcFactory { tree, gc: gc.clone() });
            let config = Config::new(dir.join(name), seqno.clone(), visible.clone())
                .use_cache(cache.clone())
                .use_descriptor_table(Some(files.clone()))
                .data_block_size_policy(BlockSizePolicy::all(block_bytes(tree)))
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
                .index_block_pinning_policy(PinningPolicy::all(true))
                .filter_block_pinning_policy(PinningPolicy::all(true))
                .index_block_partitioning_policy(PinningPolicy::all(false))
                .filter_block_partitioning_policy(PinningPolicy::all(false))
                .with_compaction_filter_factory(Some(factory));
            match config.open().map_err(engine_error)? {
                AnyTree::Standard(tree) => Ok(tree),
                AnyTree::Blob(_) => Err(Error::internal("tables of an unknown kind")),
            }
        };
        let trees = [
            open(Tree::Records, "records")?,
            open(Tree::Indexes, "indexes")?,
            open(Tree::History, "history")?,
        ];
        let highest = trees.iter().filter_map(|t| t.get_highest_persisted_seqno()).max().unwrap_or(0);
        seqno.set(highest + 2);
        visible.set(highest + 2);
        let leveled = || -> Arc<dyn CompactionStrategy + Send + Sync> { Arc::new(Leveled::default()) };
        let (compacting, swept) = (Mutex::default(), Mutex::default());
        Ok(LsmKv {
            trees,
            cache,
            seqno,
            gc,
            strategies: [leveled(), leveled(), leveled()],
            compacting,
            swept,
        })
    }
    fn tree(&self, tree: Tree) -> &lsm_tree::Tree {
        &self.trees[tree as usize]
    }
    /// Drops the tables that hold nothing but a dead ident's rows.
    fn sweep(&self, gc: &Gc) -> Result<()> {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        for ident in gc.dead.iter().filter(|i| !swept.contains(i)) {
            let low = ident.to_be_bytes();
            let Some(high) = row::ident_end(*ident) else { continue };
            for tree in [Tree::of(*ident), Tree::History] {
                self.tree(tree).drop_range::<&[u8], _>(&low[..]..&high[..]).map_err(engine_error)?;
            }
        }
        *swept = gc.dead.clone();
        Ok(())
    }
    fn set_gc(&self, gc: &Gc) {
        *self.gc.write().unwrap_or_else(PoisonError::into_inner) = gc.clone();
    }
}

impl Kv for LsmKv {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Slice>> {
        self.tree(tree).get(key, NEWEST).map_err(engine_error)
    }

    fn range(&self, tree: Tree, lower: Bound<&[u8]>, upper: Bound<&[u8]>, backward: bool) -> KvIter {
        let version = self.tree(tree).current_version();
        let (start, end) = if backward { (upper, lower) } else { (lower, upper) };
        let (start, end) = (start.map(Slice::from), end.map(Slice::from));
        let mut sources = Vec::new();
        for run in version.iter_levels().flat_map(|level| level.iter()) {
            let first = run.partition_point(|t| below(t.metadata.key_range.max(), lower));
            let last = run.partition_point(|t| !above(t.metadata.key_range.min(), upper));
            if first < last {
                let tables: Vec<lsm_tree::Table> = run[first..last].to_vec();
                let (start, end) = (start.clone(), end.clone());
                sources.push(RunWalk { tables: tables.into(), backward, start, end, open: None });
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
        let stream = std::iter::from_fn(|| match rows.next()? {
            Ok((key, Some(value))) => {
                Some(Ok(InternalValue::from_components(key, value, seqno, ValueType::Value)))
            }
            Ok((key, None)) => Some(Ok(InternalValue::new_tombstone(key, seqno))),
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
            let older = self.seqno.get();
            engine.register_tables(&tables, blobs.as_deref(), None, &[], older).map_err(engine_error)?;
        }
        Ok(())
    }

    fn compact(&self, gc: &Gc) -> Result<bool> {
        let _one = self.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        self.set_gc(gc);
        self.sweep(gc)?;
        for (tree, strategy) in self.trees.iter().zip(&self.strategies) {
            let before = tree.current_version().id();
            tree.compact(strategy.clone(), self.seqno.get()).map_err(engine_error)?;
            if tree.current_version().id() != before {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn compact_all(&self, tree: Tree, gc: &Gc) -> Result<()> {
        let _one = self.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        self.set_gc(gc);
        self.tree(tree).major_compact(limits::TABLE_BYTES, self.seqno.get()).map_err(engine_error)
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
        (self.cache.size(), pinned.sum::<usize>() as u64)
    }

    fn bulk(&self, tree: Tree) -> Result<Box<dyn KvBulk>> {
        Ok(Box::new(Bulk {
            tree: self.tree(tree).clone(),
            seqno: self.seqno.next(),
            counter: self.seqno.clone(),
            rows: Vec::new(),
            bytes: 0,
            tables: Vec::new(),
        }))
    }
}

/// Is `key` outside, below the lower bound?
fn below(key: &[u8], lower: Bound<&[u8]>) -> bool {
    match lower {
        Bound::Included(l) => key < l,
        Bound::Excluded(l) => key <= l,
        Bound::Unbounded => false,
    }
}
/// Is `key` outside, above the upper bound?
fn above(key: &[u8], upper: Bound<&[u8]>) -> bool {
    match upper {
        Bound::Included(u) => key > u,
        Bound::Excluded(u) => key >= u,
        Bound::Unbounded => false,
    }
}

type TableIter = Box<dyn DoubleEndedIterator<Item = lsm_tree::Result<InternalValue>> + Send>;

/// One run (tables that do not overlap), walked table by table.
///
/// The crate is told where to start but not where to end: it would look for the end in every block. The key is
/// compared here instead, and only in tables that reach beyond the end.
struct RunWalk {
    tables: VecDeque<lsm_tree::Table>,
    backward: bool,
    start: Bound<Slice>,
    end: Bound<Slice>,
    open: Option<OpenTable>,
}

struct OpenTable {
    rows: TableIter,
    ends_here: bool,
    /// The iterator opens the file when it needs to; a compaction removes it once nobody holds the table.
    _table: lsm_tree::Table,
}

impl RunWalk {
    fn next_table(&mut self) -> Option<OpenTable> {
        let (start, end) = (self.start.clone(), self.end.as_ref().map(|k| &**k));
        if self.backward {
            let table = self.tables.pop_back()?;
            let ends_here = below(table.metadata.key_range.min(), end);
            let rows = Box::new(table.range((Bound::Unbounded, start)));
            Some(OpenTable { rows, ends_here, _table: table })
        } else {
            let table = self.tables.pop_front()?;
            let ends_here = above(table.metadata.key_range.max(), end);
            let rows = Box::new(table.range((start, Bound::Unbounded)));
            Some(OpenTable { rows, ends_here, _table: table })
        }
    }
    fn is_beyond(&self, key: &[u8]) -> bool {
        let end = self.end.as_ref().map(|k| &**k);
        if self.backward { below(key, end) } else { above(key, end) }
    }
}

impl Source for RunWalk {
    fn next(&mut self) -> Option<Result<Entry>> {
        loop {
            let Some(OpenTable { rows, ends_here, .. }) = &mut self.open else {
                self.open = Some(self.next_table()?);
                // Only the first table holds the start.
                self.start = Bound::Unbounded;
                continue;
            };
            match if self.backward { rows.next_back() } else { rows.next() } {
                None => self.open = None,
                Some(Err(e)) => return Some(Err(engine_error(e))),
                Some(Ok(row)) => {
                    if *ends_here && self.is_beyond(&row.key.user_key) {
                        self.tables.clear();
                        self.open = None;
                        return None;
                    }
                    let value = (!row.key.is_tombstone()).then_some(row.value);
                    return Some(Ok(Entry { key: row.key.user_key, value, seqno: row.key.seqno }));
                }
            }
        }
    }
}

/// Tables made one after the other and registered together.
struct Bulk {
    tree: lsm_tree::Tree,
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
