//! A manager that has kept its routing tables all the time says what one says that reads everything anew: behind splits, merges, moves, marks of
//! chunks that are too large, and what somebody writes by hand.

#![allow(clippy::unwrap_used, dead_code)]

mod alone;

use alone::{EPOCH, NS, TIMESTAMP, UUID, World, at, now, number};
use pando_access::{Change, Uninterrupted};
use pando_balancer::Settings;
use pando_base::{Timestamp, limits};
use pando_config_server::{Balanced, CatalogManager, Merge, Migration, Sizes, Split, ns};
use pando_routing::{Chunk, ChunkVersion, Generation, Placement, ShardId};
use std::collections::BTreeMap;

const SHARDS: usize = 4;

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// What is decided for each of these loads: which chunk is the first that may move shows marks as well.
fn decisions(manager: &CatalogManager) -> String {
    let settings = Settings::parse(None, None, None).unwrap();
    let collections = [Balanced { ns: NS.to_owned(), uuid: UUID, defragmentation: None }];
    let mut said = String::new();
    for full in 0..SHARDS {
        let of = |n: usize| (ShardId::new(&format!("shard{n:04}")), if n == full { 1 << 40 } else { 0 });
        let sizes: Sizes = BTreeMap::from([(NS.to_owned(), (0..SHARDS).map(of).collect())]);
        let plan = manager.plan_round(&settings, &collections, &sizes, &BTreeMap::new()).unwrap();
        for m in plan.moves {
            said += &format!("{:?}\n", m.migration);
        }
    }
    said
}

/// One change by chance, of chunks as they are.
fn change(world: &World, manager: &CatalogManager, chance: &mut Chance, n: u32) {
    let chunks = world.chunks();
    let i = chance.below(chunks.len());
    let c = &chunks[i];
    let (min, max, shard) = (c.min.clone(), c.max.clone(), c.shard.clone());
    let generation = Generation { epoch: EPOCH, timestamp: TIMESTAMP };
    match chance.below(6) {
        0 => {
            let ends = |d: &pando_bson::RawDoc| d.get("k").and_then(|v| v.as_f64());
            let (low, high) = (ends(&min).unwrap_or(-1e6), ends(&max).unwrap_or(1e6));
            let point = ((low + high) / 2.0).floor() as i64;
            let split = Split {
                ns: NS.to_owned(),
                epoch: EPOCH,
                timestamp: None,
                min,
                max,
                points: vec![at(point)],
                shard,
            };
            // Where there is no room for a point it is refused.
            _ = now(manager.split(&Uninterrupted, "", &split));
        }
        1 => {
            let same = chunks[i..].iter().take_while(|c| c.shard == shard).last().unwrap();
            let max = same.max.clone();
            let merge = Merge { ns: NS.to_owned(), uuid: UUID, timestamp: None, min, max, shard };
            now(manager.merge(&Uninterrupted, "", &merge)).unwrap();
        }
        2 => {
            let newest = chunks.iter().map(|c| c.placement).max().unwrap();
            let version = ChunkVersion::new(generation, newest);
            let to = ShardId::new(&format!("shard{:04}", (number(&shard) + 1) % SHARDS));
            let migration = Migration {
                ns: NS.to_owned(),
                from: shard,
                to,
                min,
                max,
                version,
                collection_version: version,
                valid_after: Some(Timestamp::new(1_000 + n, 1)),
            };
            now(manager.commit_migration(&Uninterrupted, "", &migration)).unwrap();
        }
        3 => now(manager.mark_jumbo(&Uninterrupted, NS, EPOCH, (&min, &max))).unwrap(),
        4 => now(manager.clear_jumbo_flag(&Uninterrupted, NS, EPOCH, (&min, &max))).unwrap(),
        _ => {
            // By hand, without another version.
            let was = c.to_doc(UUID);
            let now = Chunk { jumbo: !c.jumbo, ..c.clone() }.to_doc(UUID);
            world.write(&[Change::Replace { ns: ns("chunks"), was, now }]);
            manager.chunks_were_written();
        }
    }
}

#[test]
fn who_keeps_tables_decides_as_who_reads_everything() {
    for seed in 0..8 {
        let world = World::new(30, SHARDS, |k| k as usize % SHARDS);
        let (manager, mut chance) = (world.manager(), Chance(seed));
        for n in 0..150 {
            change(&world, &manager, &mut chance, n);
            // Not behind each: several changes are found at once.
            if chance.below(3) == 0 {
                assert_eq!(decisions(&manager), decisions(&world.manager()), "seed {seed}, change {n}");
            }
        }
        assert_eq!(manager.kept_chunks(), world.chunks().len());
    }
}

#[test]
fn many_changes_at_once_are_found_all() {
    let world = World::new(1_000, SHARDS, |k| k as usize % SHARDS);
    let (manager, other) = (world.manager(), world.manager());
    decisions(&manager);
    // By another manager, so that nothing of it is known here.
    for k in 0..(limits::CHUNKS_LOOKED_AT_FIRST * 9) as i64 {
        let k = k * 10 + 1;
        let (min, max) = (at(k), at(k + 1));
        now(other.mark_jumbo(&Uninterrupted, NS, EPOCH, (&min, &max))).unwrap();
        now(other.clear_jumbo_flag(&Uninterrupted, NS, EPOCH, (&min, &max))).unwrap();
    }
    assert_eq!(decisions(&manager), decisions(&world.manager()));
    assert_eq!(world.chunks().iter().map(|c| c.placement).max(), Some(Placement::new(73, 0)));
    // What is marked behind changes that are not known yet hides none of them.
    let range = |k: i64| (at(k), at(k + 1));
    let (a, b) = (range(4), range(8));
    for (min, max) in [&a, &b] {
        now(manager.mark_jumbo(&Uninterrupted, NS, EPOCH, (min, max))).unwrap();
    }
    for (min, max) in [&a, &b] {
        now(manager.clear_jumbo_flag(&Uninterrupted, NS, EPOCH, (min, max))).unwrap();
    }
    now(manager.mark_jumbo(&Uninterrupted, NS, EPOCH, (&b.0, &b.1))).unwrap();
    now(manager.mark_jumbo(&Uninterrupted, NS, EPOCH, (&world.key.least(), &at(1)))).unwrap();
    assert_eq!(decisions(&manager), decisions(&world.manager()));
    // A primary that was one before keeps nothing of then.
    manager.step_up();
    assert_eq!(manager.kept_chunks(), 0);
}
