//! The balancer of a real cluster: what lies unevenly is evened out, what is in a zone goes there, shards that go are emptied (SYS-236 to
//! SYS-240).

#![allow(clippy::unwrap_used)]

use pando_bson::{Binary, Bson, doc};
use pando_testserver::{Client, Cluster, pause, run};

const PADDING: usize = 32 << 10;

/// Chunks of at most a megabyte, and a round every tenth of a second.
async fn cluster() -> (Cluster, Client) {
    let cluster = Cluster::of(2, 1).await;
    let mut c = cluster.router(0).await;
    c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
    let mut config = cluster.config_server().await;
    let mut size = doc! { "update": "settings" };
    let one =
        doc! { "q": doc! { "_id": "chunksize" }, "u": doc! { "$set": doc! { "value": 1 } }, "upsert": true };
    size.push("updates", vec![Bson::from(one)]);
    size.push("$db", "config");
    c.ok(size).await;
    let mut often = doc! { "configureFailPoint": "overrideBalanceRoundInterval", "mode": "alwaysOn" };
    often.push("data", doc! { "intervalMs": 100 });
    config.admin(often).await;
    (cluster, c)
}
async fn fill(c: &mut Client, coll: &str, keys: std::ops::Range<i64>) {
    let padding = Bson::Binary(Binary { subtype: 0, bytes: vec![7; PADDING] });
    let of = |k: i64| {
        let mut d = doc! { "_id": k, "k": k };
        d.push("p", padding.clone());
        Bson::from(d)
    };
    for from in keys.clone().step_by(50) {
        let mut insert = doc! { "insert": coll };
        insert.push("documents", (from..(from + 50).min(keys.end)).map(of).collect::<Vec<_>>());
        c.ok(insert).await;
    }
}
async fn counts(cluster: &Cluster, shards: usize, coll: &str) -> Vec<usize> {
    let mut counts = Vec::new();
    for n in 0..shards {
        counts.push(
            cluster.shard(n).await.all(doc! { "find": coll, "projection": doc! { "_id": 1 } }).await.len(),
        );
    }
    counts
}
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        pause(100).await;
    }
    panic!("{what}: not within a minute");
}
async fn forget_orphans_at_once(cluster: &Cluster, shards: usize) {
    for n in 0..shards {
        let mut shard = cluster.shard(n).await;
        shard.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 0, "$db": "admin" }).await;
    }
}
async fn everything(c: &mut Client, coll: &str) -> usize {
    c.all(doc! { "find": coll, "projection": doc! { "_id": 1 } }).await.len()
}

#[test]
fn what_one_shard_has_too_much_of_moves_to_the_other_and_stays_there() {
    run(async {
        let (cluster, mut c) = cluster().await;
        forget_orphans_at_once(&cluster, 2).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        c.admin(doc! { "balancerStop": 1 }).await;
        fill(&mut c, "c", 0..300).await;
        pause(500).await;
        assert_eq!(counts(&cluster, 2, "c").await, [300, 0], "a balancer that is stopped moves nothing");
        c.admin(doc! { "balancerStart": 1 }).await;
        // Ten megabytes: a difference of less than three chunks is none.
        until("both have about as much", async || {
            let n = counts(&cluster, 2, "c").await;
            n[0] + n[1] == 300 && n[0].abs_diff(n[1]) < 100
        })
        .await;
        let chunks = c
            .all(doc! { "find": "chunks", "projection": doc! { "_id": 1, "shard": 1 }, "$db": "config" })
            .await;
        pause(1000).await;
        let later = c
            .all(doc! { "find": "chunks", "projection": doc! { "_id": 1, "shard": 1 }, "$db": "config" })
            .await;
        assert_eq!(chunks, later, "nothing goes back and forth");
        assert_eq!(everything(&mut c, "c").await, 300);
        let status = c.admin(doc! { "balancerStatus": 1 }).await;
        assert!(status.get("numBalancerRounds").and_then(Bson::as_i64).unwrap() > 1, "{status:?}");
        cluster.shut_down().await;
    });
}

#[test]
fn a_zone_is_cut_out_and_goes_to_its_shard() {
    run(async {
        let (cluster, mut c) = cluster().await;
        forget_orphans_at_once(&cluster, 2).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        let all = (0..300).map(|k| doc! { "_id": k, "k": k }.into()).collect::<Vec<Bson>>();
        let mut insert = doc! { "insert": "c" };
        insert.push("documents", all);
        c.ok(insert).await;
        c.admin(doc! { "addShardToZone": "s1", "zone": "east" }).await;
        let mut range = doc! { "updateZoneKeyRange": "test.c", "zone": "east" };
        range.push("min", doc! { "k": 100 });
        range.push("max", doc! { "k": 200 });
        c.admin(range).await;
        until("the zone is where it belongs", async || counts(&cluster, 2, "c").await == [200, 100]).await;
        assert_eq!(everything(&mut c, "c").await, 300);
        cluster.shut_down().await;
    });
}

#[test]
fn a_shard_that_is_added_gets_its_part_and_one_that_goes_is_emptied() {
    run(async {
        let (mut cluster, mut c) = cluster().await;
        cluster.shard_collection("test.h", doc! { "k": "hashed" }).await;
        fill(&mut c, "h", 0..300).await;
        let i = cluster.start_shard(None).await;
        c.admin(doc! { "addShard": cluster.shard_host(i), "name": "s2" }).await;
        forget_orphans_at_once(&cluster, 3).await;
        until("the new one has something", async || counts(&cluster, 3, "h").await[2] > 30).await;
        c.admin(doc! { "removeShard": "s1" }).await;
        until("the shard is gone", async || {
            let reply = c.run(doc! { "removeShard": "s1", "$db": "admin" }).await;
            reply.get("state").and_then(Bson::as_str) == Some("completed")
        })
        .await;
        until("nothing is left there", async || {
            let n = counts(&cluster, 3, "h").await;
            n[1] == 0 && n[0] + n[2] == 300
        })
        .await;
        assert_eq!(everything(&mut c, "h").await, 300);
        cluster.shut_down().await;
    });
}
