//! Clusters by chance for the tests: one collection, one document a key.

use pando_balancer::Shard;
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc};
use pando_routing::zones::{ZoneRange, Zones};
use pando_routing::{Chunk, ChunkMap, Placement, ShardId, ShardKey};
use std::collections::{BTreeMap, BTreeSet};

/// One document for each of these keys.
pub(crate) const KEYS: i32 = 400;
pub(crate) const DOCUMENT_BYTES: u64 = 10;
pub(crate) const MAX_CHUNK_BYTES: u64 = 100;

/// SplitMix64.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    pub(crate) fn one_of(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) from: i32,
    pub(crate) to: i32,
    pub(crate) shard: usize,
    pub(crate) jumbo: bool,
}

pub(crate) struct World {
    pub(crate) key: ShardKey,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) shards: Vec<Shard>,
    pub(crate) zones: Zones,
    pub(crate) forces_jumbo: bool,
}

pub(crate) fn point(k: i32) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i32("k", k);
    b.finish()
}

impl World {
    pub(crate) fn by_chance(seed: u64) -> World {
        let mut c = Chance(seed);
        let key = ShardKey::parse(&point(1)).unwrap();
        let names = ["A", "B", "C"];
        let shards: Vec<Shard> = (0..2 + c.below(6))
            .map(|n| Shard {
                id: ShardId::new(&format!("s{n}")),
                zones: names.iter().filter(|_| c.one_of(3)).map(|z| (*z).to_owned()).collect(),
                draining: c.one_of(5),
            })
            .collect();
        let mut points: BTreeSet<i32> =
            (0..c.below(40)).map(|_| 1 + c.below(KEYS as u64 - 1) as i32).collect();
        points.extend([0, KEYS]);
        let points: Vec<i32> = points.into_iter().collect();
        // Some have everything on one shard.
        let spread = if c.one_of(3) { 1 } else { shards.len() as u64 };
        let pieces = points
            .windows(2)
            .map(|p| Piece { from: p[0], to: p[1], shard: c.below(spread) as usize, jumbo: c.one_of(12) })
            .collect();
        let ends: BTreeSet<i32> = (0..2 * c.below(4)).map(|_| 1 + c.below(KEYS as u64 - 1) as i32).collect();
        let ends: Vec<i32> = ends.into_iter().collect();
        let range = |p: &[i32], zone: &str| ZoneRange {
            ns: "d.c".into(),
            min: point(p[0]),
            max: point(p[1]),
            zone: zone.to_owned(),
        };
        let ranges: Vec<ZoneRange> =
            ends.chunks_exact(2).map(|p| range(p, names[c.below(3) as usize])).collect();
        let zones = Zones::new(&key, &ranges).unwrap();
        let forces_jumbo = c.one_of(4);
        World { key, pieces, shards, zones, forces_jumbo }
    }
    pub(crate) fn bound(&self, k: i32) -> DocBuf {
        match k {
            0 => self.key.least(),
            KEYS => self.key.greatest(),
            k => point(k),
        }
    }
    pub(crate) fn chunks(&self) -> ChunkMap {
        let chunk = |(i, p): (usize, &Piece)| Chunk {
            id: ObjectId([0; 12]),
            min: self.bound(p.from),
            max: self.bound(p.to),
            shard: self.shards[p.shard].id.clone(),
            placement: Placement::new(1, i as u32),
            history: Vec::new(),
            jumbo: p.jumbo,
        };
        ChunkMap::new(&self.key, &self.pieces.iter().enumerate().map(chunk).collect::<Vec<_>>()).unwrap()
    }
    pub(crate) fn bytes(&self, p: &Piece) -> u64 {
        (p.to - p.from) as u64 * DOCUMENT_BYTES
    }
    pub(crate) fn bytes_of_shards(&self) -> BTreeMap<ShardId, u64> {
        let mut all = BTreeMap::new();
        for p in &self.pieces {
            *all.entry(self.shards[p.shard].id.clone()).or_default() += self.bytes(p);
        }
        all
    }
    pub(crate) fn at(&self, min: &RawDoc) -> usize {
        self.pieces.iter().position(|p| &*self.bound(p.from) == min).expect("a chunk begins there")
    }
    pub(crate) fn cut(&mut self, i: usize, k: i32) {
        let p = self.pieces[i];
        assert!(p.from < k && k < p.to, "{k} is not within {p:?}");
        self.pieces[i].to = k;
        self.pieces.insert(i + 1, Piece { from: k, ..p });
    }
    /// The zone of a piece, and whether it reaches over an end of one; said otherwise than the balancer says it.
    pub(crate) fn zone_of(&self, p: &Piece) -> (Option<String>, bool) {
        let of = |k: i32| {
            let within = |z: &&ZoneRange| {
                z.min.get("k").unwrap().as_i64().unwrap() <= i64::from(k)
                    && i64::from(k) < z.max.get("k").unwrap().as_i64().unwrap()
            };
            self.zones.iter().find(within).map(|z| (z.min.clone(), z.zone.clone()))
        };
        let first = of(p.from);
        let reaches_over = (p.from..p.to).any(|k| of(k) != first);
        (first.map(|(_, zone)| zone).filter(|_| !reaches_over), reaches_over)
    }
    pub(crate) fn may_have(&self, shard: usize, zone: Option<&String>) -> bool {
        zone.is_none_or(|zone| self.shards[shard].zones.contains(zone))
    }
}
