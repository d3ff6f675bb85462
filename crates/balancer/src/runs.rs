//! Neighbouring chunks of one shard, which can become one (SH-SPLIT-2).

use crate::mutants::{Mutant, broken};
use pando_bson::DocBuf;
use pando_routing::zones::Zones;
use pando_routing::{ChunkMap, ChunkRef, ShardId};

/// At least two chunks, one behind the other, on one shard and in one zone.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    first: ChunkRef<'a>,
    last: ChunkRef<'a>,
    chunks: usize,
}

impl<'a> Run<'a> {
    pub fn shard(&self) -> &'a ShardId {
        self.first.shard()
    }
    pub fn chunks(&self) -> usize {
        self.chunks
    }
    /// `[min, max)` of the chunk that it becomes.
    pub fn range(&self) -> (DocBuf, DocBuf) {
        (self.first.min().to_buf(), self.last.max())
    }
    /// The first chunks of it; `None` where that would be one, or none.
    pub fn shortened(self, chunks: usize) -> Option<Run<'a>> {
        if chunks >= self.chunks {
            return Some(self);
        }
        let mut last = self.first;
        for _ in 1..chunks {
            last = last.next()?;
        }
        (chunks > 1).then_some(Run { last, chunks, ..self })
    }
}

/// All of them, as long as they can be, in the order of their keys. What is too large to be moved stays by itself; `may` says which chunks can
/// be put together with others.
pub fn runs<'a>(chunks: &'a ChunkMap, zones: &Zones, may: impl Fn(ChunkRef<'a>) -> bool) -> Vec<Run<'a>> {
    let mut found: Vec<Run<'a>> = Vec::new();
    let mut open: Option<Run<'a>> = None;
    for chunk in chunks.iter() {
        let is_free = (!chunk.is_jumbo() || broken(Mutant::JumboMerges)) && may(chunk);
        let longer = open.filter(|run| {
            let ends = zones.end_within(run.first.start(), chunk.end()) && !broken(Mutant::MergesOverZones);
            is_free && run.first.owner() == chunk.owner() && !ends
        });
        let next = match longer {
            Some(run) => Some(Run { last: chunk, chunks: run.chunks + 1, ..run }),
            None => {
                found.extend(open.filter(|run| run.chunks > 1));
                is_free.then_some(Run { first: chunk, last: chunk, chunks: 1 })
            }
        };
        open = next;
    }
    found.extend(open.filter(|run| run.chunks > 1));
    found
}
