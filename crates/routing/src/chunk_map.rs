//! All chunks of a collection, by their bounds: found in O(log n), changed without copying what stays.
//!
//! Chunks tile the whole range of keys, so a chunk ends where the next one begins and only lower bounds are kept. They lie in
//! blocks of a few hundred, in parallel arrays; a refresh makes new blocks where something changed and shares the others
//! (SYS-198, SH-CACHE-3). Each block knows who owns its chunks, so questions about long ranges skip whole blocks.
//!
//! ```text
//!   ChunkMap ─► [Arc<Block>, Arc<Block>, …]      shards: names by number
//!                   └─► bounds (bytes and documents), owners' numbers, placements, times
//! ```

mod block;
mod splice;

use crate::chunk::{Chunk, Owner};
use crate::shard_id::ShardId;
use crate::shard_key::ShardKey;
use crate::shard_set::ShardSet;
use crate::version::Placement;
use block::Block;
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_bson::{DocBuf, RawDoc};
use std::sync::Arc;

/// A shard's part of a collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    pub shard: ShardId,
    pub chunks: usize,
    /// The newest of its chunks; nothing when it has none.
    pub placement: Placement,
}

/// An immutable map. Cloning shares everything.
#[derive(Clone, Debug)]
pub struct ChunkMap {
    key: ShardKey,
    blocks: Arc<[Arc<Block>]>,
    /// By number. A shard keeps its number as long as maps are made from one another.
    parts: Arc<[Part]>,
    /// How many of them own something, and the newest of what they own.
    owning: usize,
    newest: Placement,
    len: usize,
    /// Key bytes of the upper end of everything.
    end: Arc<[u8]>,
}

/// One chunk, looked at where it lies.
#[derive(Clone, Copy)]
pub struct ChunkRef<'a> {
    map: &'a ChunkMap,
    block: usize,
    row: usize,
}

impl ChunkMap {
    /// From all chunks, in any order. They must tile the range of all keys.
    pub fn new(key: &ShardKey, chunks: &[Chunk]) -> Result<ChunkMap> {
        let empty = ChunkMap {
            key: key.clone(),
            blocks: Arc::default(),
            parts: Arc::default(),
            owning: 0,
            newest: Placement::default(),
            len: 0,
            end: key.key_of_bound(&key.greatest())?.into(),
        };
        splice::build(&empty, chunks)
    }
    /// With what has changed since: chunks with newer placements, which cover what they replace.
    ///
    /// # Errors
    /// [`ErrorCode::ConflictingOperationInProgress`] when the outcome has gaps or overlaps: the changes were read while others
    /// were made. All chunks must be read again.
    pub fn with(&self, changed: &[Chunk]) -> Result<ChunkMap> {
        splice::splice(self, changed)
    }
    pub fn key(&self) -> &ShardKey {
        &self.key
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The newest placement of all chunks.
    pub fn placement(&self) -> Placement {
        self.newest
    }
    /// Shards by their numbers; some may own nothing any more.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
    pub fn number_of(&self, shard: &ShardId) -> Option<u32> {
        self.parts.iter().position(|p| p.shard == *shard).map(|i| i as u32)
    }
    /// The newest placement of a shard's chunks; nothing when it has none.
    pub fn placement_of(&self, shard: &ShardId) -> Placement {
        self.number_of(shard).map_or(Placement::NONE, |n| self.parts[n as usize].placement)
    }
    /// Those that own something.
    pub fn owners(&self) -> ShardSet {
        let mut out = ShardSet::new();
        for (i, _) in self.parts.iter().enumerate().filter(|(_, p)| p.chunks > 0) {
            out.insert(i as u32);
        }
        out
    }

    /// The chunk that a key lies in.
    pub fn find(&self, key: &[u8]) -> Option<ChunkRef<'_>> {
        let block = self.blocks.partition_point(|b| b.first() <= key).checked_sub(1)?;
        let row = self.blocks[block].last_at_or_below(key)?;
        Some(ChunkRef { map: self, block, row })
    }
    /// The chunk that the keys just below a key lie in; nothing where there are none.
    pub fn find_below(&self, key: &[u8]) -> Option<ChunkRef<'_>> {
        let block = self.blocks.partition_point(|b| b.first() < key).checked_sub(1)?;
        let row = self.blocks[block].first_at_or_above(key).checked_sub(1)?;
        Some(ChunkRef { map: self, block, row })
    }
    /// All chunks, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = ChunkRef<'_>> {
        let rows = self.blocks.iter().enumerate().flat_map(|(i, b)| (0..b.len()).map(move |row| (i, row)));
        rows.map(|(block, row)| ChunkRef { map: self, block, row })
    }
    /// Adds the owners of all chunks with keys in `[start, end)`. A start may be of the first fields alone, and so lie below every key.
    pub fn add_owners(&self, start: &[u8], end: &[u8], out: &mut ShardSet) {
        let Some(from) = self.find(start).or_else(|| self.iter().next()) else { return };
        let all = self.owning;
        let (mut block, mut row) = (from.block, from.row);
        while let Some(b) = self.blocks.get(block) {
            if out.len() == all || (row == 0 && b.first() >= end) {
                return;
            }
            let inner = self.blocks.get(block + 1).is_some_and(|next| next.first() <= end);
            if row == 0 && inner {
                b.owners().iter().for_each(|o| _ = out.insert(o.shard));
            } else {
                let upto = b.first_at_or_above(end);
                (row..upto.max(row + 1)).for_each(|r| _ = out.insert(b.shard(r)));
            }
            (block, row) = (block + 1, 0);
        }
    }
    /// Bytes that this map keeps alive, shared ones too.
    pub fn heap_bytes(&self) -> usize {
        self.blocks.iter().map(|b| b.heap_bytes() + size_of::<Arc<Block>>()).sum::<usize>()
    }
    /// How many blocks this map has, and how many of them another one has too.
    pub fn shared_blocks(&self, other: &ChunkMap) -> (usize, usize) {
        let theirs: std::collections::BTreeSet<*const Block> = other.blocks.iter().map(Arc::as_ptr).collect();
        (self.blocks.len(), self.blocks.iter().filter(|b| theirs.contains(&Arc::as_ptr(b))).count())
    }
    pub(crate) fn end(&self) -> &[u8] {
        &self.end
    }
}

impl<'a> ChunkRef<'a> {
    fn block(self) -> &'a Block {
        &self.map.blocks[self.block]
    }
    pub fn next(self) -> Option<ChunkRef<'a>> {
        let next = ChunkRef { row: self.row + 1, ..self };
        if next.row < self.block().len() {
            return Some(next);
        }
        let block = self.block + 1;
        (block < self.map.blocks.len()).then_some(ChunkRef { map: self.map, block, row: 0 })
    }
    /// Key bytes of its lower bound.
    pub fn start(self) -> &'a [u8] {
        self.block().key(self.row)
    }
    /// Key bytes of its upper bound, which it does not hold itself.
    pub fn end(self) -> &'a [u8] {
        self.next().map_or(self.map.end(), ChunkRef::start)
    }
    pub fn min(self) -> &'a RawDoc {
        self.block().min(self.row)
    }
    pub fn max(self) -> DocBuf {
        self.next().map_or_else(|| self.map.key.greatest(), |n| n.min().to_buf())
    }
    /// The number of its owner.
    pub fn owner(self) -> u32 {
        self.block().shard(self.row)
    }
    pub fn shard(self) -> &'a ShardId {
        &self.map.parts[self.owner() as usize].shard
    }
    pub fn placement(self) -> Placement {
        self.block().placement(self.row)
    }
    pub fn is_jumbo(self) -> bool {
        self.block().is_jumbo(self.row)
    }
    /// Since when its owner has it; nothing where no history is known.
    pub fn since(self) -> Option<Timestamp> {
        self.block().since(self.row)
    }
    /// Owners before this one, the newest first.
    pub fn former_owners(self) -> &'a [Owner] {
        self.block().former_owners(self.row)
    }
    /// As a document of its own. The id is not kept.
    pub fn to_chunk(self) -> Chunk {
        let now = self.since().map(|valid_after| Owner { valid_after, shard: self.shard().clone() });
        Chunk {
            id: pando_bson::ObjectId([0; 12]),
            min: self.min().to_buf(),
            max: self.max(),
            shard: self.shard().clone(),
            placement: self.placement(),
            history: now.into_iter().chain(self.former_owners().iter().cloned()).collect(),
            jumbo: self.is_jumbo(),
        }
    }
}

fn torn(what: &str) -> Error {
    let text = format!("chunks do not fit together, they were read while others changed: {what}");
    Error::new(ErrorCode::ConflictingOperationInProgress, text)
}
