//! Chunks that reach over the end of a zone are cut there, before anything of them is moved (SH-BAL-1).

use crate::mutants::{Mutant, broken};
use crate::state::Collection;
use pando_base::limits;
use pando_bson::{DocBuf, RawDoc};
use pando_routing::ShardId;

/// A chunk `[min, max)` is cut at these points, in order.
#[derive(Clone, PartialEq, Debug)]
pub struct Split {
    pub shard: ShardId,
    pub min: DocBuf,
    pub max: DocBuf,
    pub at: Vec<DocBuf>,
}

/// All that have to be cut; of one chunk no more points than one command may have, the rest in the next round.
pub fn splits(collection: &Collection<'_>) -> Vec<Split> {
    let mut found = Vec::new();
    if collection.zones.is_empty() || broken(Mutant::NothingIsCut) {
        return found;
    }
    for chunk in collection.chunks.iter() {
        if !collection.zones.end_within(chunk.start(), chunk.end()) {
            continue;
        }
        let points = collection.zones.bounds_within(chunk.start(), chunk.end());
        found.push(Split {
            shard: chunk.shard().clone(),
            min: chunk.min().to_buf(),
            max: chunk.max(),
            at: points.into_iter().take(limits::SPLIT_POINTS_MAX).map(RawDoc::to_buf).collect(),
        });
    }
    found
}
