//! The balancer of a real cluster: what lies unevenly is evened out, what is in a zone goes there, shards that go are emptied (SYS-236 to
//! SYS-240).

#![allow(clippy::unwrap_used)]

mod at_once;
mod jumbo;
mod merging;
mod settings;
mod zones;

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, Cluster, pause, run};

const PADDING: usize = 32 << 10;

/// Chunks of at most a megabyte, and a round every tenth of a second.
async fn cluster() -> (Cluster, Client) {
    cluster_of(2).await
}
async fn cluster_of(shards: usize) -> (Cluster, Client) {
    let cluster = Cluster::of(shards, 1).await;
    let mut c = cluster.router(0).await;
    c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
    set(&mut c, "chunksize", "value", 1).await;
    let mut often = doc! { "configureFailPoint": "overrideBalanceRoundInterval", "mode": "alwaysOn" };
    often.push("data", doc! { "intervalMs": 100 });
    cluster.config_server().await.admin(often).await;
    (cluster, c)
}
/// A field of a document of `config.settings`, which need not be there yet.
async fn set(c: &mut Client, name: &str, field: &str, to: impl Into<Bson>) {
    let mut fields = Document::new();
    fields.push(field, to);
    change(c, "settings", name, "$set", fields).await;
}
async fn change(c: &mut Client, coll: &str, name: &str, operator: &str, fields: Document) {
    let mut with = Document::new();
    with.push(operator, fields);
    let mut one = doc! { "q": doc! { "_id": name }, "upsert": coll == "settings" };
    one.push("u", with);
    let mut update = doc! { "update": coll };
    update.push("updates", vec![Bson::from(one)]);
    update.push("$db", "config");
    let reply = c.ok(update).await;
    assert_eq!(reply.get("n").and_then(Bson::as_i64), Some(1), "{reply:?}");
}
/// As many rounds of the balancer have begun and ended.
async fn rounds(c: &mut Client, n: i64) {
    let done = async |c: &mut Client| {
        let status = c.admin(doc! { "balancerStatus": 1 }).await;
        status.get("numBalancerRounds").and_then(Bson::as_i64).unwrap()
    };
    // The one that is under way has begun before.
    let upto = done(c).await + n + 1;
    until("rounds go on", async || done(c).await >= upto).await;
}
/// `(min.k, max.k, shard, whether it is marked)` of each chunk.
async fn chunks(c: &mut Client, coll: &str) -> Vec<(Bson, Bson, String, bool)> {
    let mut entry = doc! { "find": "collections", "$db": "config" };
    entry.push("filter", doc! { "_id": format!("test.{coll}") });
    let entry = c.all(entry).await;
    let mut find = doc! { "find": "chunks", "sort": doc! { "min": 1 }, "$db": "config" };
    let mut filter = Document::new();
    filter.push("uuid", entry[0].get("uuid").cloned().unwrap());
    find.push("filter", filter);
    let of = |d: &Document| {
        let key = |name: &str| d.get(name).and_then(Bson::as_doc).and_then(|b| b.get("k")).cloned().unwrap();
        let shard = d.get("shard").and_then(Bson::as_str).unwrap().to_owned();
        (key("min"), key("max"), shard, matches!(d.get("jumbo"), Some(Bson::Boolean(true))))
    };
    c.all(find).await.iter().map(of).collect()
}
/// Documents of 32 KB, numbered, with these keys.
async fn fill_with(c: &mut Client, coll: &str, keys: &[i64]) {
    let padding = Bson::Binary(Binary { subtype: 0, bytes: vec![7; PADDING] });
    let of = |(i, k): (usize, &i64)| {
        let mut d = doc! { "_id": i as i64, "k": *k };
        d.push("p", padding.clone());
        Bson::from(d)
    };
    let docs: Vec<Bson> = keys.iter().enumerate().map(of).collect();
    for some in docs.chunks(50) {
        let mut insert = doc! { "insert": coll };
        insert.push("documents", some.to_vec());
        c.ok(insert).await;
    }
}
async fn fill(c: &mut Client, coll: &str, keys: std::ops::Range<i64>) {
    fill_with(c, coll, &keys.collect::<Vec<i64>>()).await;
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
