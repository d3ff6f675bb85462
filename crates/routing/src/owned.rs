//! What a shard answers for: which keys, now or at a time, lie in chunks that it owns (SH-OWN-1 to SH-OWN-4).
//!
//! Documents elsewhere are orphans: they came with a migration that is not done, or were left behind by one. Reads must not
//! show them.

use crate::chunk_map::ChunkRef;
use crate::history;
use crate::shard_id::ShardId;
use crate::shard_set::ShardSet;
use crate::table::RoutingTable;
use pando_base::{Result, Timestamp};
use pando_bson::RawDoc;
use pando_bson::keystring::KeyBuilder;
use std::sync::Arc;

/// A table as one shard sees it. Cheap to clone; whoever holds it keeps the table alive, and so the documents that it owns
/// by it: ranges are deleted only when nobody does (SH-RDEL-3).
#[derive(Clone, Debug)]
pub struct Ownership {
    pub table: Arc<RoutingTable>,
    shard: ShardId,
    number: Option<u32>,
}

impl Ownership {
    pub fn new(table: Arc<RoutingTable>, shard: ShardId) -> Ownership {
        let number = table.chunks.number_of(&shard);
        Ownership { table, shard, number }
    }
    pub fn shard(&self) -> &ShardId {
        &self.shard
    }
    /// Whether it owns every chunk, so nothing needs to be looked at.
    pub fn is_everything(&self) -> bool {
        self.chunks() == self.table.chunks.len()
    }
    pub fn chunks(&self) -> usize {
        self.number.map_or(0, |n| self.table.chunks.parts()[n as usize].chunks)
    }
    /// When a chunk came to this shard, or left it, last; zero where that never was, or is forgotten. Looks at all chunks.
    pub fn newest_move(&self) -> Timestamp {
        let begun = self.table.collection.generation.timestamp;
        let of_this = |c: &ChunkRef<'_>| {
            Some(c.owner()) == self.number || c.former_owners().iter().any(|o| o.shard == self.shard)
        };
        let since = self.table.chunks.iter().filter(of_this).filter_map(|c| c.since());
        since.filter(|since| *since > begun).max().unwrap_or(Timestamp::ZERO)
    }
    pub fn owns_key(&self, key: &[u8]) -> bool {
        self.number.is_some() && self.table.chunks.find(key).map(|c| c.owner()) == self.number
    }
    /// Whether it owns a document; `scratch` is for its key. A document whose key cannot be made belongs nowhere.
    pub fn owns(&self, doc: &RawDoc, scratch: &mut KeyBuilder) -> bool {
        self.table.collection.key.key_of(doc, scratch).is_ok() && self.owns_key(scratch.bytes())
    }
    /// Whether it owned a key at a time.
    pub fn owned_key_at(&self, key: &[u8], at: Timestamp) -> Result<bool> {
        let Some(chunk) = self.table.chunks.find(key) else { return Ok(false) };
        Ok(history::owner_at(chunk, at)? == &self.shard)
    }
    /// Whether it owns any key in `[start, end)`.
    pub fn overlaps(&self, start: &[u8], end: &[u8]) -> bool {
        let mut owners = ShardSet::new();
        self.table.chunks.add_owners(start, end, &mut owners);
        self.number.is_some_and(|n| owners.contains(n))
    }
    /// Its ranges of key bytes in order, neighbouring chunks as one.
    pub fn ranges(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut out: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for chunk in self.table.chunks.iter().filter(|c| Some(c.owner()) == self.number) {
            match out.last_mut() {
                Some(last) if last.1 == chunk.start() => last.1 = chunk.end().to_vec(),
                _ => out.push((chunk.start().to_vec(), chunk.end().to_vec())),
            }
        }
        out
    }
}
