//! Rounds of the balancer on clusters by chance whose data nobody changes: every migration keeps the rules, and it comes to an end in which
//! there is nothing left to do. Each rule that is switched off is noticed.

#![allow(clippy::unwrap_used, dead_code)]

mod world;

use pando_balancer::{Collection, Migration, Shards, migrations, mutants, splits};
use pando_routing::zones::Zones;
use pando_routing::{ChunkMap, ShardId};
use std::collections::{BTreeMap, BTreeSet};
use world::{Chance, DOCUMENT_BYTES, MAX_CHUNK_BYTES, World};

const ROUNDS_MAX: usize = 2_000;

impl World {
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
                evens_out: true,
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
