//! One look at all chunks of a collection: what each shard could give.

use crate::mutants::{Mutant, broken};
use crate::state::Collection;
use pando_routing::{ChunkRef, ShardId};
use std::collections::BTreeMap;

/// For each shard and each zone (`None`: outside of all) the first chunk that can be moved.
pub(crate) struct Survey<'a> {
    first: BTreeMap<ShardId, BTreeMap<Option<&'a str>, ChunkRef<'a>>>,
}

impl<'a> Survey<'a> {
    pub(crate) fn of(collection: &Collection<'a>) -> Survey<'a> {
        // By the numbers of the owners: names are long, and chunks many.
        let mut of_owner: Vec<BTreeMap<Option<&'a str>, ChunkRef<'a>>> = Vec::new();
        of_owner.resize_with(collection.chunks.parts().len(), BTreeMap::new);
        for chunk in collection.chunks.iter() {
            let (start, end) = (chunk.start(), chunk.end());
            // Whoever wants it to be tried again takes the mark away.
            if chunk.is_jumbo() && !broken(Mutant::JumboMoves) {
                continue;
            }
            // It is split first: as it is it belongs nowhere.
            if collection.zones.end_within(start, end) && !broken(Mutant::UncutMoves) {
                continue;
            }
            if let Some(of_zone) = of_owner.get_mut(chunk.owner() as usize) {
                of_zone.entry(collection.zones.of(start, end)).or_insert(chunk);
            }
        }
        let names = collection.chunks.parts().iter().map(|part| part.shard.clone());
        Survey { first: names.zip(of_owner).collect() }
    }
    /// What a shard could give, in the order of its zones; what lies in none comes first.
    pub(crate) fn of_shard(
        &self,
        id: &ShardId,
    ) -> impl Iterator<Item = (Option<&'a str>, ChunkRef<'a>)> + '_ {
        self.first.get(id).into_iter().flatten().map(|(zone, chunk)| (*zone, *chunk))
    }
    pub(crate) fn in_zone(&self, id: &ShardId, zone: Option<&str>) -> Option<ChunkRef<'a>> {
        self.first.get(id)?.get(&zone).copied()
    }
}
