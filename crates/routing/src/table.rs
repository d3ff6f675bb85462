//! What somebody knows about one sharded collection: an immutable copy of the config servers' truth at one moment.

use crate::chunk::Chunk;
use crate::chunk_map::ChunkMap;
use crate::collection::CollectionEntry;
use crate::shard_id::ShardId;
use crate::version::{ChunkVersion, Placement};
use pando_base::{Error, ErrorCode, Result};

#[derive(Clone, Debug)]
pub struct RoutingTable {
    pub collection: CollectionEntry,
    pub chunks: ChunkMap,
}

impl RoutingTable {
    pub fn new(collection: CollectionEntry, chunks: &[Chunk]) -> Result<RoutingTable> {
        let chunks = ChunkMap::new(&collection.key, chunks)?;
        Ok(RoutingTable { collection, chunks })
    }
    /// With what was read later: the entry, and chunks from [`RoutingTable::placement`] on. Another generation is another table.
    pub fn advanced(&self, collection: CollectionEntry, changed: &[Chunk]) -> Result<RoutingTable> {
        if collection.generation != self.collection.generation {
            let text = format!("{} is another collection than before", collection.ns);
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        let chunks = self.chunks.with(changed)?;
        if chunks.placement() < self.placement() {
            let text = format!("{} was read as it had been before", collection.ns);
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        Ok(RoutingTable { collection, chunks })
    }
    pub fn placement(&self) -> Placement {
        self.chunks.placement()
    }
    /// Of the newest chunk.
    pub fn version(&self) -> ChunkVersion {
        ChunkVersion::new(self.collection.generation, self.placement())
    }
    /// Of the newest chunk of this shard; `0|0` in the collection's generation where it has none (SH-VER-2).
    pub fn shard_version(&self, shard: &ShardId) -> ChunkVersion {
        ChunkVersion::new(self.collection.generation, self.chunks.placement_of(shard))
    }
}
