//! Config servers that are a shard as well: how they become one, what they do then, and how they are none again (SH-ROLE-1).

#![allow(clippy::unwrap_used)]

mod members;
mod refusals;
mod work;

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster, pause, run};

const FROM: &str = "transitionFromDedicatedConfigServer";
const TO: &str = "transitionToDedicatedConfigServer";

fn command(name: &str) -> Document {
    let mut command = Document::new();
    command.push(name, 1);
    command.push("$db", "admin");
    command
}
fn text<'a>(doc: &'a Document, field: &str) -> &'a str {
    doc.get(field).and_then(Bson::as_str).unwrap_or_default()
}
fn ids(docs: &[Document]) -> Vec<&str> {
    docs.iter().map(|d| text(d, "_id")).collect()
}
async fn shards(c: &mut Client) -> Vec<Document> {
    c.all(doc! { "find": "shards", "sort": { "_id": 1 }, "$db": "config" }).await
}
/// What moved away is deleted at once. The balancer does nothing of itself, and often once it is started.
async fn quick(cluster: &Cluster, c: &mut Client) {
    c.ok(doc! { "balancerStop": 1, "$db": "admin" }).await;
    let mut config = cluster.config_server().await;
    often(&mut config).await;
    delete_at_once(&mut [cluster.shard(0).await, config]).await;
}
async fn often(config: &mut Client) {
    let mut often = doc! { "configureFailPoint": "overrideBalanceRoundInterval", "mode": "alwaysOn" };
    often.push("data", doc! { "intervalMs": 100 });
    config.admin(often).await;
}
async fn delete_at_once(nodes: &mut [Client]) {
    for node in nodes {
        node.ok(doc! { "setParameter": 1, "orphanCleanupDelaySecs": 0, "$db": "admin" }).await;
    }
}
async fn insert(c: &mut Client, coll: &str, keys: std::ops::Range<i64>) {
    let mut insert = doc! { "insert": coll };
    insert.push("documents", keys.map(|k| doc! { "_id": k, "k": k }.into()).collect::<Vec<Bson>>());
    c.ok(insert).await;
}
async fn keys(c: &mut Client, coll: &str) -> Vec<i64> {
    let all = c.all(doc! { "find": coll, "sort": { "k": 1 } }).await;
    all.iter().filter_map(|d| d.get("k").and_then(Bson::as_i64)).collect()
}
fn move_range(coll: &str, to: &str, min: impl Into<Bson>, max: impl Into<Bson>) -> Document {
    let mut command = doc! { "moveRange": format!("test.{coll}"), "toShard": to };
    command.push("min", doc! { "k": min.into() });
    command.push("max", doc! { "k": max.into() });
    command.push("waitForDelete", true);
    command.push("$db", "admin");
    command
}
fn move_primary(to: &str) -> Document {
    doc! { "movePrimary": "test", "to": to, "$db": "admin" }
}
async fn until_dedicated(c: &mut Client) {
    let mut last = Document::new();
    for _ in 0..300 {
        last = c.ok(command(TO)).await;
        if text(&last, "state") == "completed" {
            return;
        }
        pause(50).await;
    }
    panic!("it does not end: {last:?}");
}

async fn until_removed(c: &mut Client, shard: &str) {
    for _ in 0..300 {
        let reply = c.ok(doc! { "removeShard": shard, "$db": "admin" }).await;
        if text(&reply, "state") == "completed" {
            return;
        }
        pause(50).await;
    }
    panic!("{shard} does not go");
}

#[test]
fn the_config_servers_are_a_shard_for_a_while() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let (mut c, mut config) = (cluster.router(0).await, cluster.config_server().await);
        quick(&cluster, &mut c).await;
        for round in 0..2 {
            c.ok(command(FROM)).await;
            let all = shards(&mut c).await;
            assert_eq!(ids(&all), ["config", "s0"]);
            assert_eq!(text(&all[0], "host"), format!("c/127.0.0.1:{}", cluster.config_port()));
            c.ok(doc! { "enableSharding": "test", "primaryShard": "config", "$db": "admin" }).await;
            cluster.shard_collection("test.c", doc! { "k": 1 }).await;
            insert(&mut c, "c", 0..100).await;
            insert(&mut c, "plain", 0..10).await;
            assert_eq!(keys(&mut config, "c").await.len(), 100);
            c.ok(move_range("c", "s0", 50, 80)).await;
            let all: Vec<i64> = (0..100).collect();
            assert_eq!(keys(&mut c, "c").await, all);
            assert_eq!(keys(&mut config, "c").await.len(), 70);
            c.ok(move_range("c", "config", 60, 70)).await;
            assert_eq!((keys(&mut config, "c").await.len(), keys(&mut c, "c").await), (80, all.clone()));
            c.ok(move_primary("s0")).await;
            assert_eq!((keys(&mut config, "plain").await.len(), keys(&mut c, "plain").await.len()), (0, 10));
            c.ok(move_primary("config")).await;
            assert_eq!((keys(&mut config, "plain").await.len(), keys(&mut c, "plain").await.len()), (10, 10));

            let started = c.ok(command(TO)).await;
            assert_eq!((text(&started, "state"), text(&started, "shard")), ("started", "config"));
            assert_eq!(started.get("dbsToMove"), Some(&vec![Bson::from("test")].into()));
            let ongoing = c.ok(command(TO)).await;
            assert_eq!(text(&ongoing, "state"), "ongoing");
            c.ok(doc! { "balancerStart": 1, "$db": "admin" }).await;
            c.ok(move_primary("s0")).await;
            until_dedicated(&mut c).await;
            c.ok(doc! { "balancerStop": 1, "$db": "admin" }).await;
            assert_eq!(ids(&shards(&mut c).await), ["s0"]);
            assert_eq!((keys(&mut c, "c").await, keys(&mut c, "plain").await.len()), (all, 10));
            let left = config.admin(doc! { "listDatabases": 1, "nameOnly": true }).await;
            let left = format!("{left:?}");
            assert!(!left.contains("test"), "round {round}: {left}");
            assert_eq!(config.err(doc! { "create": "x", "$db": "foo" }).await.0, 73);
            c.ok(doc! { "dropDatabase": 1 }).await;
        }
        cluster.shut_down().await;
    });
}
