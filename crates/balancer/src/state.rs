//! What a round goes by.

use crate::mutants::{Mutant, broken};
use pando_routing::zones::Zones;
use pando_routing::{ChunkMap, ShardId};
use std::collections::{BTreeMap, BTreeSet};

/// A shard as the registry has it.
#[derive(Clone, Debug)]
pub struct Shard {
    pub id: ShardId,
    pub zones: BTreeSet<String>,
    /// It is to be removed: everything leaves it, and nothing comes.
    pub draining: bool,
}

impl Shard {
    /// Whether it may have what lies in a zone, or in none.
    pub fn may_have(&self, zone: Option<&str>) -> bool {
        zone.is_none_or(|zone| self.zones.contains(zone))
    }
}

/// The shards of the cluster, and those that have something to do in this round.
#[derive(Clone, Debug)]
pub struct Shards {
    all: BTreeMap<ShardId, Shard>,
    busy: BTreeSet<ShardId>,
}

impl Shards {
    pub fn new(all: impl IntoIterator<Item = Shard>) -> Shards {
        Shards { all: all.into_iter().map(|s| (s.id.clone(), s)).collect(), busy: BTreeSet::new() }
    }
    pub fn get(&self, id: &ShardId) -> Option<&Shard> {
        self.all.get(id)
    }
    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Shard> {
        self.all.values()
    }
    /// It gives or takes in this round already: also of a migration that somebody else has begun.
    pub fn occupy(&mut self, id: &ShardId) {
        self.busy.insert(id.clone());
    }
    pub fn is_free(&self, id: &ShardId) -> bool {
        self.all.contains_key(id) && !self.busy.contains(id)
    }
    /// Whether it may be given something to do in this round.
    pub(crate) fn may_act(&self, id: &ShardId) -> bool {
        self.is_free(id) || broken(Mutant::ManyAtOnce)
    }
}

/// A sharded collection.
pub struct Collection<'a> {
    pub ns: &'a str,
    pub chunks: &'a ChunkMap,
    pub zones: &'a Zones,
    /// Of its documents on each shard, without orphans; a shard that is not named has none.
    pub bytes: &'a BTreeMap<ShardId, u64>,
    /// What one migration moves at most (`chunkSize` of the collection, or of the cluster).
    pub max_chunk_bytes: u64,
    /// What is too large moves all the same, unless it is marked (`attemptToBalanceJumboChunks`).
    pub forces_jumbo: bool,
    /// Not while it is defragmented: what was put together would be taken apart.
    pub evens_out: bool,
}

impl Collection<'_> {
    pub(crate) fn bytes_of(&self, id: &ShardId) -> u64 {
        self.bytes.get(id).copied().unwrap_or_default()
    }
}
