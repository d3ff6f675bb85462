//! What routing costs. `cargo bench -p pando-routing [NAME]`: nanoseconds of a processor for each call, bytes for each chunk, at
//! 10 to 1,000,000 chunks on 100 shards.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use pando_base::{Timestamp, uuid::Uuid};
use pando_bson::keystring::KeyBuilder;
use pando_bson::{DocBuf, ObjectId, doc};
use pando_query::QueryCtx;
use pando_query::matcher::Matcher;
use pando_routing::chunk::Owner;
use pando_routing::target::{owners_of, point_of};
use pando_routing::{
    Chunk, CollectionEntry, Generation, Ownership, Placement, RoutingTable, ShardId, ShardKey, split,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SHARDS: usize = 100;

/// Time this thread has spent on a processor, where the system tells it: other load does not count.
fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = stat.and_then(|s| s.split(' ').next()?.parse().ok());
    ns.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

/// The best of five batches.
fn run(name: &str, mut f: impl FnMut()) {
    let filter = std::env::args().nth(1).filter(|a| !a.starts_with('-'));
    if filter.is_some_and(|want| !name.contains(&want)) {
        return;
    }
    let (mut calls, mut best, mut batches) = (1u32, f64::MAX, 0);
    while batches < 5 {
        let start = cpu_time();
        (0..calls).for_each(|_| f());
        let took = cpu_time() - start;
        if took < Duration::from_millis(50) {
            calls = calls.saturating_mul(2);
            continue;
        }
        batches += 1;
        best = best.min(took.as_nanos() as f64 / f64::from(calls));
    }
    println!("{name:<52} {best:>12.0} ns");
}

fn entry(key: &ShardKey) -> CollectionEntry {
    CollectionEntry {
        ns: "d.c".to_owned(),
        generation: Generation { epoch: ObjectId([1; 12]), timestamp: Timestamp::new(1, 1) },
        uuid: Uuid([1; 16]),
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

fn chunks(key: &ShardKey, bounds: &[DocBuf]) -> Vec<Chunk> {
    let ends: Vec<DocBuf> =
        [key.least()].into_iter().chain(bounds.iter().cloned()).chain([key.greatest()]).collect();
    let one = |(i, two): (usize, &[DocBuf])| {
        let shard = ShardId::new(&format!("shard{:04}", i * 7919 % SHARDS));
        let history = vec![Owner { valid_after: Timestamp::new(1, 1), shard: shard.clone() }];
        let (min, max) = (two[0].clone(), two[1].clone());
        Chunk {
            id: ObjectId([0; 12]),
            min,
            max,
            shard,
            placement: Placement::new(1, i as u32),
            history,
            jumbo: false,
        }
    };
    ends.windows(2).enumerate().map(one).collect()
}

fn at_size(n: usize) {
    let key = ShardKey::parse(&doc! { "region": 1, "customer": 1 }.to_raw()).unwrap();
    let bound = |i: usize| {
        doc! { "region": format!("region-{:03}", i * 200 / n), "customer": i as i64 * 10 }.to_raw()
    };
    let all = chunks(&key, &(1..n).map(bound).collect::<Vec<_>>());
    let table = Arc::new(RoutingTable::new(entry(&key), &all).unwrap());
    let bytes = table.chunks.heap_bytes();
    println!("{n} chunks: {} bytes a chunk", bytes / n);
    let (mut i, mut scratch) = (0, KeyBuilder::default());
    let mut next = || {
        i = (i + 7_919_077) % n;
        i
    };
    let documents: Vec<DocBuf> = (0..1000).map(|_| {
        let i = next();
        doc! { "_id": i as i64, "region": format!("region-{:03}", i * 200 / n), "customer": i as i64 * 10 + 3, "x": "y" }.to_raw()
    }).collect();
    let mut d = 0;
    run(&format!("insert: key and chunk, {n} chunks"), || {
        d = (d + 1) % documents.len();
        table.collection.key.key_of(&documents[d], &mut scratch).unwrap();
        black_box(table.chunks.find(scratch.bytes()).unwrap().owner());
    });
    let owned = Ownership::new(table.clone(), ShardId::new("shard0001"));
    run(&format!("ownership of a document, {n} chunks"), || {
        d = (d + 1) % documents.len();
        black_box(owned.owns(&documents[d], &mut scratch));
    });
    let ctx = QueryCtx::default();
    let parse = |d: pando_bson::Document| Matcher::parse(&d.to_raw(), &ctx).unwrap();
    let region = format!("region-{:03}", 100);
    let point = parse(doc! { "region": region.as_str(), "customer": n as i64 * 5 });
    run(&format!("update: the one key of a filter, {n} chunks"), || {
        point_of(&key, &point, &mut scratch).unwrap().unwrap();
        black_box(table.chunks.find(scratch.bytes()).unwrap().owner());
    });
    for (what, filter) in [
        ("find by the whole key", doc! { "region": region.as_str(), "customer": n as i64 * 5 }),
        ("find by the first field", doc! { "region": region.as_str() }),
        ("find by the second field", doc! { "customer": n as i64 * 5 }),
        ("find by nothing of the key", doc! { "x": 1 }),
    ] {
        let matcher = parse(filter);
        run(&format!("{what}, {n} chunks"), || _ = black_box(owners_of(&table.chunks, &matcher)));
    }
    let mut moved = all[n / 2].clone();
    (moved.shard, moved.placement) = (ShardId::new("shard0042"), Placement::new(2, 0));
    let moved = [moved];
    run(&format!("refresh after one move, {n} chunks"), || {
        _ = black_box(table.advanced(entry(&key), &moved).unwrap())
    });
    if n <= 100_000 {
        run(&format!("refresh of everything, {n} chunks"), || {
            _ = black_box(RoutingTable::new(entry(&key), &all).unwrap())
        });
    }
}

fn main() {
    for n in [10, 1_000, 100_000, 1_000_000] {
        at_size(n);
    }
    let key = ShardKey::parse(&doc! { "_id": "hashed" }.to_raw()).unwrap();
    let table = RoutingTable::new(entry(&key), &chunks(&key, &split::hashed_points(&key, 8000))).unwrap();
    let (document, mut scratch) = (doc! { "_id": ObjectId([7; 12]), "x": 1 }.to_raw(), KeyBuilder::default());
    println!("hashed, 8000 chunks: {} bytes a chunk", table.chunks.heap_bytes() / 8000);
    run("insert: hashed key and chunk, 8000 chunks", || {
        key.key_of(&document, &mut scratch).unwrap();
        black_box(table.chunks.find(scratch.bytes()).unwrap().owner());
    });
}
