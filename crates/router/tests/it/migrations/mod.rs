//! Ranges that move between the shards of a real cluster, while clients read and write through its router.

#![allow(clippy::unwrap_used)]

mod caught_up;
mod commands;
mod definitions;
mod histories;
mod move_primary;
mod readers;
mod refine_shard_key;
mod rename;
mod secondaries;
mod statistics;
mod told;
mod transactions;
mod versions;

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster, pause, run, spawn};

async fn cluster(coll: &str, docs: i64) -> (Cluster, Client) {
    let cluster = Cluster::of(2, 1).await;
    let mut c = cluster.router(0).await;
    c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
    cluster.shard_collection(&format!("test.{coll}"), doc! { "k": 1 }).await;
    let all = (0..docs).map(|i| doc! { "_id": i, "k": i, "n": 0 }.into()).collect();
    insert(&mut c, coll, all).await;
    for n in 0..2 {
        let mut shard = cluster.shard(n).await;
        shard.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 0, "$db": "admin" }).await;
    }
    (cluster, c)
}
async fn insert(c: &mut Client, coll: &str, docs: Vec<Bson>) {
    let mut command = doc! { "insert": coll };
    command.push("documents", docs);
    c.ok(command).await;
}
fn move_range(coll: &str, to: &str, min: impl Into<Bson>, max: impl Into<Bson>) -> Document {
    let mut command = doc! { "_shardsvrMoveRange": format!("test.{coll}"), "toShard": to };
    command.push("min", doc! { "k": min.into() });
    command.push("max", doc! { "k": max.into() });
    command.push("maxChunkSizeBytes", 128_i64 << 20);
    command.push("waitForDelete", true);
    command.push("writeConcern", doc! { "w": "majority" });
    command.push("$db", "admin");
    command
}
async fn keys(c: &mut Client, coll: &str) -> Vec<i64> {
    let all = c.all(doc! { "find": coll, "sort": { "k": 1 } }).await;
    all.iter().filter_map(|d| d.get("k").and_then(Bson::as_i64)).collect()
}
/// What lies on a shard, whoever owns it.
async fn there(cluster: &Cluster, n: usize, coll: &str) -> Vec<i64> {
    keys(&mut cluster.shard(n).await, coll).await
}

#[test]
fn a_range_moves_there_and_back_and_leaves_nothing_behind() {
    run(async {
        let (cluster, mut c) = cluster("c", 300).await;
        let all: Vec<i64> = (0..300).collect();
        let mut shard = cluster.shard(0).await;
        shard.ok(move_range("c", "s1", 100, 200)).await;
        assert_eq!(keys(&mut c, "c").await, all);
        let range: Vec<i64> = (100..200).collect();
        assert_eq!(there(&cluster, 1, "c").await, range);
        assert_eq!(there(&cluster, 0, "c").await.len(), 200);
        // Its documents are written where they are now.
        let mut update = doc! { "update": "c" };
        update.push(
            "updates",
            vec![Bson::from(doc! { "q": doc! { "k": 150 }, "u": doc! { "$set": doc! { "n": 7 } } })],
        );
        c.ok(update).await;
        let mut other = cluster.shard(1).await;
        other.ok(move_range("c", "s0", 100, 200)).await;
        assert_eq!(keys(&mut c, "c").await, all);
        assert!(there(&cluster, 1, "c").await.is_empty());
        let changed = c.all(doc! { "find": "c", "filter": doc! { "n": 7 } }).await;
        assert_eq!(changed.len(), 1);
        cluster.shut_down().await;
    });
}

#[test]
fn what_is_written_while_a_range_moves_is_where_it_belongs() {
    run(async {
        let (cluster, mut c) = cluster("c", 1000).await;
        let mut writers = Vec::new();
        for w in 0..4_i64 {
            let mut own = cluster.router(0).await;
            writers.push(spawn(async move {
                let mut done = 0;
                for round in 0..60 {
                    let at = (w * 250 + round * 7) % 1000;
                    let mut update = doc! { "update": "c" };
                    let inc = doc! { "q": doc! { "k": at }, "u": doc! { "$inc": doc! { "n": 1 } } };
                    update.push("updates", vec![Bson::from(inc)]);
                    own.ok(update).await;
                    done += 1;
                    insert(
                        &mut own,
                        "c",
                        vec![doc! { "_id": 10_000 + w * 1000 + round, "k": at, "n": 0 }.into()],
                    )
                    .await;
                    if round % 3 == 0 {
                        let mut delete = doc! { "delete": "c" };
                        let one =
                            doc! { "q": doc! { "_id": 10_000 + w * 1000 + round, "k": at }, "limit": 1 };
                        delete.push("deletes", vec![Bson::from(one)]);
                        own.ok(delete).await;
                    }
                }
                done
            }));
        }
        pause(20).await;
        for (from, to) in [(0, "s1"), (1, "s0"), (0, "s1")] {
            let mut shard = cluster.shard(from).await;
            shard.ok(move_range("c", to, 200, 800)).await;
        }
        let mut increments = 0;
        for writer in writers {
            increments += writer.await.unwrap();
        }
        let all = c.all(doc! { "find": "c" }).await;
        let sum: i64 = all.iter().filter_map(|d| d.get("n").and_then(Bson::as_i64)).sum();
        assert_eq!((all.len(), sum), (1000 + 4 * 40, increments));
        for (n, inside) in [(0, false), (1, true)] {
            let wrong = |k: &&i64| (200..800).contains(*k) != inside;
            let keys = there(&cluster, n, "c").await;
            assert_eq!(keys.iter().filter(wrong).count(), 0, "shard {n}: {keys:?}");
        }
        cluster.shut_down().await;
    });
}
