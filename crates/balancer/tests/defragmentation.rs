//! Collections by chance are defragmented: what becomes one, or moves, may; it comes to an end, and then there is nothing left to do. Each rule that is
//! switched off is noticed.

#![allow(clippy::unwrap_used, dead_code)]

mod world;

use pando_balancer::{Collection, Measured, Phase, Shards, defragment, mutants, runs};
use std::collections::BTreeSet;
use world::{Chance, MAX_CHUNK_BYTES, Piece, World};

const ROUNDS_MAX: usize = 2_000;

impl World {
    fn cut_at_zones(&mut self) {
        while let Some((i, k)) = self.pieces.iter().enumerate().find_map(|(i, p)| {
            let first = self.zone_of(&Piece { to: p.from + 1, ..*p });
            let end =
                (p.from + 1..p.to).find(|k| self.zone_of(&Piece { from: *k, to: k + 1, ..*p }) != first);
            end.map(|k| (i, k))
        }) {
            self.cut(i, k);
        }
    }
    /// These become one.
    fn merge(&mut self, from: usize, upto: usize) -> Result<(), String> {
        let of = &self.pieces[from..upto];
        let one = Piece { to: of[of.len() - 1].to, ..of[0] };
        let same = of.iter().all(|p| p.shard == one.shard && !p.jumbo);
        if of.len() < 2 || !same || self.zone_of(&one).1 {
            return Err(format!("these do not become one: {of:?}"));
        }
        self.pieces.splice(from..upto, [one]);
        Ok(())
    }
    /// A neighbour's shard that could have this small one.
    fn goes_to(&self, i: usize) -> BTreeSet<usize> {
        let p = self.pieces[i];
        let beside = [i.checked_sub(1), Some(i + 1)].into_iter().flatten().filter_map(|n| self.pieces.get(n));
        let takes = |n: &&Piece| {
            let one = Piece { from: p.from.min(n.from), to: p.to.max(n.to), ..p };
            let (zone, _) = self.zone_of(&p);
            let may = !self.shards[n.shard].draining && self.may_have(n.shard, zone.as_ref());
            n.shard != p.shard && !n.jumbo && !self.zone_of(&one).1 && may
        };
        let is_small = self.bytes(&p) < MAX_CHUNK_BYTES / 4 && !p.jumbo;
        beside.filter(takes).map(|n| n.shard).filter(|_| is_small).collect()
    }
}

fn defragmented(seed: u64) -> Result<usize, String> {
    let mut w = World::by_chance(seed);
    let mut c = Chance(!seed);
    w.cut_at_zones();
    let (mut measured, mut phase, mut stuck) = (Measured::default(), Phase::MergeAndMeasure, BTreeSet::new());
    for round in 0..ROUNDS_MAX {
        let (chunks, bytes) = (w.chunks(), w.bytes_of_shards());
        let zones = w.zones.clone();
        let collection = Collection {
            ns: "d.c",
            chunks: &chunks,
            zones: &zones,
            bytes: &bytes,
            max_chunk_bytes: MAX_CHUNK_BYTES,
            forces_jumbo: false,
            evens_out: false,
        };
        let mut shards = Shards::new(w.shards.clone());
        if c.one_of(3) {
            shards.occupy(&w.shards[0].id);
        }
        let tasks = defragment(phase, &collection, &measured, &mut shards);
        let is_over = tasks.is_over();
        let mut busy = BTreeSet::new();
        for run in tasks.merges.iter().rev() {
            // Some fail.
            if !c.one_of(10) {
                let (min, _) = run.range();
                let from = w.at(&min);
                w.merge(from, from + run.chunks())?;
            }
        }
        for chunk in &tasks.measure {
            let p = w.pieces[w.at(chunk.min())];
            match c.one_of(10) {
                true => measured.note_failure(chunk.start(), chunk.end()),
                false => measured.note(chunk.start(), chunk.end(), w.bytes(&p)),
            }
        }
        for m in &tasks.moves {
            let number = |id: &pando_routing::ShardId| w.shards.iter().position(|s| s.id == *id).unwrap();
            let (i, from, to) = (w.at(&m.min), number(&m.from), number(&m.to));
            if !busy.insert(from) || !busy.insert(to) {
                return Err(format!("a shard has two migrations: {m:?}"));
            }
            if w.pieces[i].shard != from || !w.goes_to(i).contains(&to) || stuck.contains(&w.pieces[i].from) {
                return Err(format!("it goes for no reason, or where it may not be: {m:?}"));
            }
            if c.one_of(10) {
                measured.note_stuck(&w.key.key_of_bound(&m.min).unwrap());
                stuck.insert(w.pieces[i].from);
            } else {
                w.pieces[i].shard = to;
            }
        }
        if is_over {
            match phase.next() {
                Some(next) => phase = next,
                None => return w.check_defragmented(&stuck).map(|()| round),
            }
        }
    }
    Err(format!("it goes on after {ROUNDS_MAX} rounds"))
}

impl World {
    fn check_defragmented(&self, stuck: &BTreeSet<i32>) -> Result<(), String> {
        for i in 0..self.pieces.len() {
            let mut one = World { pieces: self.pieces.clone(), ..self.copy() };
            if i + 1 < self.pieces.len() && one.merge(i, i + 2).is_ok() {
                return Err(format!("{:?} could be one with the next", self.pieces[i]));
            }
            if !self.goes_to(i).is_empty() && !stuck.contains(&self.pieces[i].from) {
                return Err(format!("{:?} could go to its neighbour", self.pieces[i]));
            }
        }
        Ok(())
    }
    fn copy(&self) -> World {
        World {
            key: self.key.clone(),
            pieces: Vec::new(),
            shards: self.shards.clone(),
            zones: self.zones.clone(),
            forces_jumbo: self.forces_jumbo,
        }
    }
}

fn all() -> Result<usize, String> {
    let mut longest = 0;
    for seed in 0..300 {
        longest = longest.max(defragmented(seed).map_err(|e| format!("seed {seed}: {e}"))?);
    }
    Ok(longest)
}

#[test]
fn defragmenting_keeps_the_rules_and_comes_to_an_end() {
    println!("at most {} rounds", all().unwrap());
}

#[test]
fn every_broken_rule_of_it_is_noticed() {
    for mutant in mutants::Mutant::OF_DEFRAGMENTATION {
        mutants::activate(Some(*mutant));
        let noticed = std::panic::catch_unwind(all).unwrap_or_else(|_| Err("a panic".to_owned()));
        mutants::activate(None);
        println!("{mutant:?}: {noticed:?}");
        assert!(noticed.is_err(), "nobody notices {mutant:?}");
    }
}

/// Whatever the reason: its shard is away, or cannot tell.
#[test]
fn what_cannot_be_measured_holds_nothing_up() {
    let mut w = World::by_chance(1);
    w.pieces = vec![
        Piece { from: 0, to: 1, shard: 0, jumbo: false },
        Piece { from: 1, to: 400, shard: 1, jumbo: false },
    ];
    w.zones = Default::default();
    let (chunks, bytes) = (w.chunks(), w.bytes_of_shards());
    let (zones, mut measured) = (w.zones.clone(), Measured::default());
    let collection = Collection {
        ns: "d.c",
        chunks: &chunks,
        zones: &zones,
        bytes: &bytes,
        max_chunk_bytes: MAX_CHUNK_BYTES,
        forces_jumbo: false,
        evens_out: false,
    };
    for _ in 0..10 {
        let tasks =
            defragment(Phase::MoveAndMerge, &collection, &measured, &mut Shards::new(w.shards.clone()));
        assert_eq!(tasks.measure.len(), 2);
        tasks.measure.iter().for_each(|chunk| measured.note_failure(chunk.start(), chunk.end()));
    }
    assert!(
        defragment(Phase::MoveAndMerge, &collection, &measured, &mut Shards::new(w.shards.clone())).is_over()
    );
}

#[test]
fn a_run_can_be_shortened() {
    let mut w = World::by_chance(1);
    w.pieces = (0..5).map(|i| Piece { from: i * 80, to: i * 80 + 80, shard: 0, jumbo: false }).collect();
    w.zones = Default::default();
    let chunks = w.chunks();
    let found = runs(&chunks, &w.zones, |_| true);
    assert_eq!((found.len(), found[0].chunks()), (1, 5));
    let three = found[0].shortened(3).unwrap();
    assert_eq!((three.chunks(), three.range().1), (3, w.bound(240)));
    assert!(found[0].shortened(1).is_none() && found[0].shortened(9).unwrap().chunks() == 5);
    // One in the middle may not.
    let middle = w.key.key_of_bound(&w.bound(160)).unwrap();
    assert_eq!(
        runs(&chunks, &w.zones, |c| c.start() != middle).iter().map(|r| r.chunks()).collect::<Vec<_>>(),
        [2, 2]
    );
}
