//! Chance that repeats, documents from text, and collections of chunks that change as the config servers change them.
#![allow(dead_code, clippy::unwrap_used)]

use pando_base::{Timestamp, uuid::Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId, extjson};
use pando_routing::chunk::Owner;
use pando_routing::{Chunk, CollectionEntry, Generation, Placement, ShardId, ShardKey};

pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }
}

pub(crate) fn doc(json: &str) -> DocBuf {
    let mut out = DocBuilder::new();
    out.document(&extjson::parse(json).expect(json));
    out.finish()
}

pub(crate) fn key(json: &str) -> ShardKey {
    ShardKey::parse(&doc(json)).expect(json)
}

pub(crate) fn entry(key: &ShardKey, secs: u32) -> CollectionEntry {
    CollectionEntry {
        ns: "d.c".to_owned(),
        generation: Generation { epoch: ObjectId([secs as u8; 12]), timestamp: Timestamp::new(secs, 1) },
        uuid: Uuid([secs as u8; 16]),
        key: key.clone(),
        unique: false,
        default_collation: None,
        last_mod_ms: 0,
        max_chunk_bytes: None,
        no_balance: false,
        allow_migrations: true,
        timeseries: None,
        resharding: None,
    }
}

pub(crate) fn shard(i: usize) -> ShardId {
    ShardId::new(&format!("s{i}"))
}

/// The truth about a collection, kept as simply as possible.
#[derive(Clone)]
pub(crate) struct Truth {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) newest: Placement,
    pub(crate) clock: u32,
}

impl Truth {
    /// Cut at these bounds, dealt to so many shards by turns.
    pub(crate) fn new(key: &ShardKey, bounds: &[DocBuf], shards: usize) -> Truth {
        let ends: Vec<DocBuf> =
            [key.least()].into_iter().chain(bounds.iter().cloned()).chain([key.greatest()]).collect();
        let chunks = ends.windows(2).enumerate().map(|(i, two)| Chunk {
            id: ObjectId([0; 12]),
            min: two[0].clone(),
            max: two[1].clone(),
            shard: shard(i % shards),
            placement: Placement::new(1, i as u32),
            history: vec![Owner { valid_after: Timestamp::new(1, 1), shard: shard(i % shards) }],
            jumbo: false,
        });
        let chunks: Vec<Chunk> = chunks.collect();
        let newest = Placement::new(1, chunks.len() as u32 - 1);
        Truth { chunks, newest, clock: 1 }
    }
    /// Another owner for a chunk; one of those that stay becomes newer too, as a real server has it.
    pub(crate) fn move_chunk(&mut self, i: usize, to: ShardId) {
        let from = self.chunks[i].shard.clone();
        if from == to {
            return;
        }
        self.clock += 1;
        let moved = self.newest.after_move().unwrap();
        let c = &mut self.chunks[i];
        (c.shard, c.placement) = (to.clone(), moved);
        c.history.insert(0, Owner { valid_after: Timestamp::new(self.clock, 1), shard: to });
        self.newest = moved;
        if let Some(control) = self.chunks.iter_mut().find(|c| c.shard == from) {
            self.newest = moved.after_change().unwrap();
            control.placement = self.newest;
        }
    }
    pub(crate) fn split(&mut self, i: usize, at: DocBuf) {
        let (mut low, mut high) = (self.chunks[i].clone(), self.chunks[i].clone());
        (low.max, high.min) = (at.clone(), at);
        low.placement = self.newest.after_change().unwrap();
        high.placement = low.placement.after_change().unwrap();
        self.newest = high.placement;
        self.chunks.splice(i..=i, [low, high]);
    }
    pub(crate) fn merge(&mut self, i: usize) {
        if self.chunks.get(i + 1).is_none_or(|next| next.shard != self.chunks[i].shard) {
            return;
        }
        let mut one = self.chunks[i].clone();
        one.max = self.chunks[i + 1].max.clone();
        one.placement = self.newest.after_change().unwrap();
        self.newest = one.placement;
        self.chunks.splice(i..=i + 1, [one]);
    }
    /// What a refresh reads: chunks from a placement on, in the order of their placements.
    pub(crate) fn since(&self, placement: Placement) -> Vec<Chunk> {
        let mut out: Vec<Chunk> = self.chunks.iter().filter(|c| c.placement >= placement).cloned().collect();
        out.sort_by_key(|c| c.placement);
        out
    }
}
