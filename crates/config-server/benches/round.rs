//! What a decision of the config servers costs, at up to 1,000,000 chunks on 1,000 shards. `cargo bench -p pando-config-server`: milliseconds.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, dead_code)]

#[path = "../tests/alone/mod.rs"]
mod alone;

use alone::{EPOCH, NS, TIMESTAMP, UUID, World, at, now};
use pando_access::Uninterrupted;
use pando_balancer::Settings;
use pando_base::Timestamp;
use pando_config_server::{Balanced, CatalogManager, Migration, Sizes, Split};
use pando_routing::{ChunkVersion, Generation, Placement, ShardId};
use std::collections::BTreeMap;
use std::time::Instant;

fn timed<T>(what: &str, f: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let out = f();
    println!("    {what:<46} {:>10.2} ms", start.elapsed().as_secs_f64() * 1e3);
    out
}

fn shard(n: usize) -> ShardId {
    ShardId::new(&format!("shard{n:04}"))
}

/// Half of the shards have twice as much as the others.
fn sizes(shards: usize) -> Sizes {
    let of = |n: usize| (shard(n), if n.is_multiple_of(2) { 400 << 30 } else { 200 << 30 });
    BTreeMap::from([(NS.to_owned(), (0..shards).map(of).collect())])
}

fn round(manager: &CatalogManager, sizes: &Sizes) -> usize {
    let settings = Settings::parse(None, None, None).unwrap();
    let collections = [Balanced { ns: NS.to_owned(), uuid: UUID, defragmentation: None }];
    manager.plan_round(&settings, &collections, sizes, &BTreeMap::new()).unwrap().moves.len()
}

fn main() {
    for (chunks, shards) in [(1_000, 10), (100_000, 100), (1_000_000, 1_000)] {
        println!("{chunks} chunks, {shards} shards");
        let world = World::new(chunks, shards, |k| k as usize % shards);
        let (manager, sizes) = (world.manager(), sizes(shards));
        let moves = timed("the first round of a primary", || round(&manager, &sizes));
        assert_eq!(moves, shards / 2);
        timed("each other round", || round(&manager, &sizes));
        let generation = Generation { epoch: EPOCH, timestamp: TIMESTAMP };
        let version = ChunkVersion::new(generation, Placement::new(1, chunks as u32));
        let k = chunks / 2;
        let migration = Migration {
            ns: NS.to_owned(),
            from: shard(k as usize % shards),
            to: shard((k as usize + 1) % shards),
            min: at(k),
            max: at(k + 1),
            version,
            collection_version: version,
            valid_after: Some(Timestamp::new(50, 1)),
        };
        timed("the commit of a migration", || {
            now(manager.commit_migration(&Uninterrupted, "", &migration)).unwrap()
        });
        let split = Split {
            ns: NS.to_owned(),
            epoch: EPOCH,
            timestamp: None,
            min: world.key.least(),
            max: at(1),
            points: vec![at(0)],
            shard: shard(0),
        };
        timed("the commit of a split", || now(manager.split(&Uninterrupted, "", &split)).unwrap());
        timed("the round behind these", || round(&manager, &sizes));
    }
}
