//! Who may take what lies in a zone: those that have least come first.

use crate::mutants::{Mutant, broken};
use crate::state::{Collection, Shard, Shards};
use pando_routing::ShardId;
use std::collections::BTreeMap;

/// The shards of each zone by the bytes that they have. Shards that are busy stay so for the round, so each list is walked once.
pub(crate) struct Recipients<'r, 'c> {
    all: Vec<&'r Shard>,
    of_zones: BTreeMap<Option<&'c str>, Line>,
}

/// From the first shard that was free the last time.
struct Line {
    shards: Vec<ShardId>,
    first: usize,
}

impl<'r, 'c> Recipients<'r, 'c> {
    pub(crate) fn new(collection: &Collection<'c>, all: &'r [Shard]) -> Self {
        let takes = |s: &&Shard| !s.draining || broken(Mutant::DrainingTakes);
        let mut all: Vec<&Shard> = all.iter().filter(takes).collect();
        all.sort_by_cached_key(|s| collection.bytes_of(&s.id));
        Recipients { all, of_zones: BTreeMap::new() }
    }
    /// The free one that has least of those that may have what lies there.
    pub(crate) fn least_loaded(
        &mut self,
        zone: Option<&'c str>,
        from: &ShardId,
        shards: &Shards,
    ) -> Option<ShardId> {
        let all = &self.all;
        let line = self.of_zones.entry(zone).or_insert_with(|| {
            let may_have = |s: &&&Shard| s.may_have(zone) || broken(Mutant::AnybodyTakes);
            Line { shards: all.iter().filter(may_have).map(|s| s.id.clone()).collect(), first: 0 }
        });
        let is_free = |id: &&ShardId| shards.may_act(id);
        line.first += line.shards.iter().skip(line.first).take_while(|id| !is_free(id)).count();
        line.shards.iter().skip(line.first).filter(is_free).find(|id| *id != from).cloned()
    }
}
