//! One run (tables that do not overlap), walked block by block through the shared cache.
//!
//! The crate's own iterators give every row as two counted references; here a row is looked at where it lies
//! ([`BlockRows`]), and the bounds of a scan are sought once, at its first and last block, not asked of each row.

use super::block::BlockRows;
use super::lsm::engine_error;
use super::walk::Source;
use lsm_tree::descriptor_table::DescriptorTable;
use lsm_tree::file_accessor::FileAccessor;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::util::load_block;
use lsm_tree::table::{Block, BlockHandle, BlockOffset, IndexBlock};
use lsm_tree::{Cache, GlobalTableId, Slice, Table};
use pando_base::panics::poisoned;
use pando_base::{Error, HashMap, Result};
use std::collections::VecDeque;
use std::fs::File;
use std::ops::Bound;
use std::sync::{Arc, RwLock};

/// Reads blocks of the tables of all trees.
pub(super) struct Blocks {
    cache: Arc<Cache>,
    files: FileAccessor,
    /// Where the blocks of each scanned table lie.
    indexes: RwLock<HashMap<GlobalTableId, Arc<TableIndex>>>,
}

/// A table's blocks, by their last keys. (The crate keeps the same, but not for others to see.)
struct TableIndex {
    keys: Box<[u8]>,
    blocks: Box<[BlockAt]>,
}

struct BlockAt {
    /// Where the last key ends in `keys`.
    key_end: u32,
    bytes: u32,
    offset: u64,
}

#[cold]
fn damaged(table: &Table) -> Error {
    crate::damage::damaged(format!("table file {}", table.path.display()))
}
fn error_in(table: &Table, e: lsm_tree::Error) -> Error {
    engine_error(e).context(format!("table file {}", table.path.display()))
}

impl TableIndex {
    fn read(table: &Table) -> Result<TableIndex> {
        let file = File::open(&*table.path)?;
        let (at, compression) = (table.regions.tli, table.metadata.index_block_compression);
        let index =
            IndexBlock::new(Block::from_file(&file, at, compression).map_err(|e| error_in(table, e))?);
        let (mut keys, mut blocks) = (Vec::new(), Vec::new());
        let bytes = index.as_slice();
        for block in index.iter() {
            let parts = [block.prefix.as_ref(), Some(&block.end_key)];
            for part in parts.into_iter().flatten() {
                keys.extend_from_slice(bytes.get(part.0..part.1).ok_or_else(|| damaged(table))?);
            }
            let key_end = keys.len() as u32;
            blocks.push(BlockAt { key_end, bytes: block.size, offset: *block.offset });
        }
        // A two-level index would list other things; none is ever written.
        if table.regions.index.is_some() || blocks.is_empty() {
            return Err(damaged(table));
        }
        Ok(TableIndex { keys: keys.into(), blocks: blocks.into() })
    }
    /// The first block that reaches to `key`, the last one at most.
    fn block_of(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.blocks.len() - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            let start = if middle == 0 { 0 } else { self.blocks[middle - 1].key_end as usize };
            if &self.keys[start..self.blocks[middle].key_end as usize] < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
    fn bytes(&self) -> usize {
        self.keys.len() + size_of_val(&*self.blocks)
    }
}

impl Blocks {
    pub(super) fn new(cache: Arc<Cache>, files: Arc<DescriptorTable>) -> Blocks {
        Blocks { cache, files: FileAccessor::DescriptorTable(files), indexes: RwLock::default() }
    }
    fn index(&self, id: GlobalTableId, table: &Table) -> Result<Arc<TableIndex>> {
        if let Some(found) = self.indexes.read().unwrap_or_else(poisoned).get(&id) {
            return Ok(found.clone());
        }
        let index = Arc::new(TableIndex::read(table)?);
        self.indexes.write().unwrap_or_else(poisoned).insert(id, index.clone());
        Ok(index)
    }
    fn load(&self, id: GlobalTableId, table: &Table, at: &BlockAt) -> Result<Slice> {
        let handle = BlockHandle::new(BlockOffset(at.offset), at.bytes);
        let compression = table.metadata.data_block_compression;
        load_block(id, &table.path, &self.files, &self.cache, &handle, BlockType::Data, compression)
            .map(|block| block.data)
            .map_err(|e| error_in(table, e))
    }
    /// Forgets the tables that are no more.
    pub(super) fn retain(&self, wanted: impl Fn(&GlobalTableId) -> bool) {
        self.indexes.write().unwrap_or_else(poisoned).retain(|id, _| wanted(id));
    }
    /// Bytes that the indexes take.
    pub(super) fn pinned_bytes(&self) -> usize {
        self.indexes.read().unwrap_or_else(poisoned).values().map(|i| i.bytes()).sum()
    }
}

/// A walk over a run.
pub(super) struct RunWalk {
    blocks: Arc<Blocks>,
    tree: u64,
    tables: VecDeque<Table>,
    backward: bool,
    /// Where the walk begins and ends, in its direction.
    start: Bound<Slice>,
    end: Bound<Slice>,
    open: Option<OpenTable>,
    /// The unit that the walk is in, the row it stands at, and how many of its rows come after that.
    rows: BlockRows,
    row: usize,
    left: usize,
    /// What the table adds to its rows' sequence numbers.
    seqno: u64,
}

struct OpenTable {
    /// Its file is removed once nobody holds it and a compaction has replaced it.
    table: Table,
    id: GlobalTableId,
    index: Arc<TableIndex>,
    /// The next block, and the next unit of the present one.
    block: Option<usize>,
    unit: Option<usize>,
    ends_here: bool,
}

/// Is `key` outside, below the lower bound?
pub(super) fn below(key: &[u8], lower: Bound<&[u8]>) -> bool {
    match lower {
        Bound::Included(l) => key < l,
        Bound::Excluded(l) => key <= l,
        Bound::Unbounded => false,
    }
}
/// Is `key` outside, above the upper bound?
pub(super) fn above(key: &[u8], upper: Bound<&[u8]>) -> bool {
    match upper {
        Bound::Included(u) => key > u,
        Bound::Excluded(u) => key >= u,
        Bound::Unbounded => false,
    }
}

fn as_bytes(bound: &Bound<Slice>) -> Bound<&[u8]> {
    bound.as_ref().map(|k| &**k)
}

impl RunWalk {
    /// `start` and `end` in the direction of the walk; `tables` are those of the run that may hold rows between.
    pub(super) fn new(
        blocks: Arc<Blocks>,
        tree: u64,
        tables: &[Table],
        backward: bool,
        (start, end): (Bound<Slice>, Bound<Slice>),
    ) -> RunWalk {
        RunWalk {
            blocks,
            tree,
            tables: tables.to_vec().into(),
            backward,
            start,
            end,
            open: None,
            rows: BlockRows::default(),
            row: 0,
            left: 0,
            seqno: 0,
        }
    }

    fn open_table(&mut self) -> Result<bool> {
        let next = if self.backward { self.tables.pop_back() } else { self.tables.pop_front() };
        let Some(table) = next else { return Ok(false) };
        let id = GlobalTableId::from((self.tree, table.id()));
        let index = self.blocks.index(id, &table)?;
        let block = match as_bytes(&self.start) {
            Bound::Included(key) | Bound::Excluded(key) => index.block_of(key),
            Bound::Unbounded if self.backward => index.blocks.len() - 1,
            Bound::Unbounded => 0,
        };
        let keys = &table.metadata.key_range;
        let end = as_bytes(&self.end);
        let ends_here = if self.backward { below(keys.min(), end) } else { above(keys.max(), end) };
        self.seqno = table.global_seqno();
        self.open = Some(OpenTable { table, id, index, block: Some(block), unit: None, ends_here });
        Ok(true)
    }

    /// Goes to the first row of the next unit that has one within the bounds; false at the end.
    fn next_unit(&mut self) -> Result<bool> {
        loop {
            let Some(open) = &mut self.open else {
                if !self.open_table()? {
                    return Ok(false);
                }
                continue;
            };
            if let Some(unit) = open.unit {
                self.rows.load(unit).ok_or_else(|| damaged(&open.table))?;
                let next = unit + 1;
                open.unit = if self.backward {
                    unit.checked_sub(1)
                } else {
                    (next < self.rows.units()).then_some(next)
                };
                if self.enter_unit() {
                    return Ok(true);
                }
            } else if let Some(block) = open.block {
                let at = &open.index.blocks[block];
                let data = self.blocks.load(open.id, &open.table, at)?;
                self.rows.open(data).ok_or_else(|| damaged(&open.table))?;
                let next = block + 1;
                open.block = match self.backward {
                    true => block.checked_sub(1),
                    false => (next < open.index.blocks.len()).then_some(next),
                };
                open.unit = Some(match as_bytes(&self.start) {
                    Bound::Included(key) | Bound::Excluded(key) => {
                        self.rows.unit_of(key).ok_or_else(|| damaged(&open.table))?
                    }
                    Bound::Unbounded if self.backward => self.rows.units().saturating_sub(1),
                    Bound::Unbounded => 0,
                });
            } else {
                self.open = None;
            }
        }
    }

    /// Stands at the first row of the loaded unit that lies within the bounds, if one does.
    fn enter_unit(&mut self) -> bool {
        let (mut low, mut high) = (0, self.rows.len());
        let start = as_bytes(&self.start);
        match (self.backward, start) {
            (_, Bound::Unbounded) => {}
            (false, _) => low = self.rows.partition_point(|k| below(k, start)),
            (true, _) => high = self.rows.partition_point(|k| !above(k, start)),
        }
        if self.open.as_ref().is_some_and(|open| open.ends_here) {
            let end = as_bytes(&self.end);
            let (whole_low, whole_high) = (low, high);
            match self.backward {
                false => high = high.min(self.rows.partition_point(|k| !above(k, end))),
                true => low = low.max(self.rows.partition_point(|k| below(k, end))),
            }
            if (low, high) != (whole_low, whole_high) {
                // The rest of the run lies beyond.
                self.tables.clear();
                self.open = None;
            }
        }
        if low >= high {
            return false;
        }
        self.start = Bound::Unbounded;
        self.row = if self.backward { high - 1 } else { low };
        self.left = high - low - 1;
        true
    }
}

impl Source for RunWalk {
    #[inline]
    fn step(&mut self) -> Result<bool> {
        if self.left == 0 {
            return self.next_unit();
        }
        self.left -= 1;
        self.row = if self.backward { self.row - 1 } else { self.row + 1 };
        Ok(true)
    }
    #[inline]
    fn key(&self) -> &[u8] {
        self.rows.key(self.row)
    }
    fn seqno(&self) -> u64 {
        self.rows.seqno(self.row) + self.seqno
    }
    #[inline]
    fn value(&self) -> Option<&[u8]> {
        self.rows.value(self.row)
    }
    fn share(&self) -> Slice {
        self.rows.share(self.row)
    }
}
