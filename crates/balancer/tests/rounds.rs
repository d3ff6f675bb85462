//! Rounds of the balancer on clusters by chance whose data nobody changes: every migration keeps the rules, and it comes to an end in which
//! there is nothing left to do. Each rule that is switched off is noticed.

#![allow(clippy::unwrap_used)]

use pando_balancer::{Collection, Migration, Shard, Shards, migrations, mutants, splits};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc};
use pando_routing::zones::{ZoneRange, Zones};
use pando_routing::{Chunk, ChunkMap, Placement, ShardId, ShardKey};
use std::collections::{BTreeMap, BTreeSet};

/// One document for each of these keys.
const KEYS: i32 = 400;
const DOCUMENT_BYTES: u64 = 10;
const MAX_CHUNK_BYTES: u64 = 100;
const ROUNDS_MAX: usize = 2_000;

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn one_of(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    from: i32,
    to: i32,
    shard: usize,
    jumbo: bool,
}

struct World {
    key: ShardKey,
    pieces: Vec<Piece>,
    shards: Vec<Shard>,
    zones: Zones,
    forces_jumbo: bool,
}

fn point(k: i32) -> DocBuf {
    let mut b = DocBuilder::new();
    b.i32("k", k);
    b.finish()
}

impl World {
    fn by_chance(seed: u64) -> World {
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
    fn bound(&self, k: i32) -> DocBuf {
        match k {
            0 => self.key.least(),
            KEYS => self.key.greatest(),
            k => point(k),
        }
    }
    fn chunks(&self) -> ChunkMap {
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
    fn bytes(&self, p: &Piece) -> u64 {
        (p.to - p.from) as u64 * DOCUMENT_BYTES
    }
    fn bytes_of_shards(&self) -> BTreeMap<ShardId, u64> {
        let mut all = BTreeMap::new();
        for p in &self.pieces {
            *all.entry(self.shards[p.shard].id.clone()).or_default() += self.bytes(p);
        }
        all
    }
    fn at(&self, min: &RawDoc) -> usize {
        self.pieces.iter().position(|p| &*self.bound(p.from) == min).expect("a chunk begins there")
    }
    fn cut(&mut self, i: usize, k: i32) {
        let p = self.pieces[i];
        assert!(p.from < k && k < p.to, "{k} is not within {p:?}");
        self.pieces[i].to = k;
        self.pieces.insert(i + 1, Piece { from: k, ..p });
    }
    /// The zone of a piece, and whether it reaches over an end of one; said otherwise than the balancer says it.
    fn zone_of(&self, p: &Piece) -> (Option<String>, bool) {
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
    fn may_have(&self, shard: usize, zone: Option<&String>) -> bool {
        zone.is_none_or(|zone| self.shards[shard].zones.contains(zone))
    }

    /// The rules of one round.
    fn check(&self, round: &[Migration]) -> Result<(), String> {
        let mut busy = BTreeSet::new();
        for m in round {
            let p = self.pieces[self.at(&m.min)];
            let number = |id: &ShardId| self.shards.iter().position(|s| s.id == *id).unwrap();
            let (from, to) = (number(&m.from), number(&m.to));
            let (zone, reaches_over) = self.zone_of(&p);
            if !busy.insert(from) || !busy.insert(to) {
                return Err(format!("a shard has two migrations: {m:?}"));
            }
            if p.shard != from || self.bound(p.to) != m.max {
                return Err(format!("the donor does not own {m:?}"));
            }
            if p.jumbo || reaches_over {
                return Err(format!("it cannot be moved: {m:?}"));
            }
            if m.force.is_forced() != (self.shards[from].draining || self.forces_jumbo) {
                return Err(format!("what is too large moves, or stays, for no reason: {m:?}"));
            }
            if self.shards[to].draining || !self.may_have(to, zone.as_ref()) {
                return Err(format!("the recipient may not have {m:?}"));
            }
        }
        Ok(())
    }
    /// The donor takes as much from the lower end as a migration may move.
    fn carry_out(&mut self, m: &Migration) {
        let i = self.at(&m.min);
        let p = self.pieces[i];
        if self.bytes(&p) > MAX_CHUNK_BYTES {
            self.cut(i, p.from + (MAX_CHUNK_BYTES / DOCUMENT_BYTES) as i32);
        }
        self.pieces[i].shard = self.shards.iter().position(|s| s.id == m.to).unwrap();
    }
    /// Nothing is left to do.
    fn check_end(&self) -> Result<(), String> {
        let receives = |from: usize, zone: Option<&String>| {
            (0..self.shards.len())
                .any(|to| to != from && !self.shards[to].draining && self.may_have(to, zone))
        };
        for p in &self.pieces {
            let (zone, reaches_over) = self.zone_of(p);
            if reaches_over {
                return Err(format!("{p:?} reaches over the end of a zone"));
            }
            let leaves = self.shards[p.shard].draining || !self.may_have(p.shard, zone.as_ref());
            if leaves && !p.jumbo && receives(p.shard, zone.as_ref()) {
                return Err(format!("{p:?} does not belong where it is"));
            }
        }
        let bytes = self.bytes_of_shards();
        let of = |n: usize| bytes.get(&self.shards[n].id).copied().unwrap_or_default();
        let zones: BTreeSet<Option<String>> = self.pieces.iter().map(|p| self.zone_of(p).0).collect();
        for zone in zones {
            let able: Vec<usize> = (0..self.shards.len())
                .filter(|n| !self.shards[*n].draining && self.may_have(*n, zone.as_ref()))
                .collect();
            let ideal = able.iter().map(|n| of(*n)).sum::<u64>() / (able.len() as u64).max(1);
            let gives = |n: &&usize| {
                self.pieces.iter().any(|p| p.shard == **n && !p.jumbo && self.zone_of(p).0 == zone)
            };
            let most = able.iter().filter(gives).map(|n| of(*n)).max().unwrap_or_default();
            let least = able.iter().map(|n| of(*n)).min().unwrap_or_default();
            if most > ideal && least < ideal && most - least >= 3 * MAX_CHUNK_BYTES {
                return Err(format!("{zone:?}: {most} beside {least}"));
            }
        }
        Ok(())
    }
}

fn rounds(seed: u64) -> Result<usize, String> {
    let mut w = World::by_chance(seed);
    let mut c = Chance(!seed);
    for round in 0..ROUNDS_MAX {
        let (mut chunks, bytes) = (w.chunks(), w.bytes_of_shards());
        let forces_jumbo = w.forces_jumbo;
        let of = |chunks: &ChunkMap, zones: &Zones, bytes: &BTreeMap<ShardId, u64>, shards: &mut Shards| {
            let collection = Collection {
                ns: "d.c",
                chunks,
                zones,
                bytes,
                max_chunk_bytes: MAX_CHUNK_BYTES,
                forces_jumbo,
            };
            (splits(&collection), migrations(&collection, shards))
        };
        let mut shards = Shards::new(w.shards.clone());
        let (cuts, mut moves) = of(&chunks, &w.zones, &bytes, &mut shards);
        let cut_now = !cuts.is_empty() && c.one_of(2);
        if cut_now {
            for cut in &cuts {
                for at in &cut.at {
                    let k = at.get("k").unwrap().as_i64().unwrap() as i32;
                    let i =
                        w.pieces.iter().position(|p| p.from < k && k < p.to).ok_or("it is cut already")?;
                    w.cut(i, k);
                }
            }
            chunks = w.chunks();
            shards = Shards::new(w.shards.clone());
            moves = of(&chunks, &w.zones, &bytes, &mut shards).1;
        }
        w.check(&moves)?;
        if moves.is_empty() && cuts.is_empty() {
            return w.check_end().map(|()| round);
        }
        // Some fail.
        moves.retain(|_| !c.one_of(10));
        moves.iter().for_each(|m| w.carry_out(m));
    }
    Err(format!("it goes on after {ROUNDS_MAX} rounds"))
}

fn all() -> Result<usize, String> {
    let mut longest = 0;
    for seed in 0..400 {
        longest = longest.max(rounds(seed).map_err(|e| format!("seed {seed}: {e}"))?);
    }
    Ok(longest)
}

#[test]
fn balancing_keeps_the_rules_and_comes_to_an_end() {
    println!("at most {} rounds", all().unwrap());
}

#[test]
fn every_broken_rule_is_noticed() {
    all().unwrap();
    for mutant in mutants::Mutant::ALL {
        mutants::activate(Some(*mutant));
        let noticed = std::panic::catch_unwind(all).unwrap_or_else(|_| Err("a panic".to_owned()));
        mutants::activate(None);
        println!("{mutant:?}: {noticed:?}");
        assert!(noticed.is_err(), "nobody notices {mutant:?}");
    }
}
