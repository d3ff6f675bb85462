//! What other shards do, done by config servers that are one: definitions, transactions, change streams, and what config servers have all
//! shards do.

use super::*;

/// `config` is the primary shard, and has the lower half of `test.c`.
async fn begun() -> (Cluster, Client) {
    let cluster = Cluster::of(1, 1).await;
    let mut c = cluster.router(0).await;
    quick(&cluster, &mut c).await;
    c.ok(command(FROM)).await;
    c.ok(doc! { "enableSharding": "test", "primaryShard": "config", "$db": "admin" }).await;
    cluster.shard_collection("test.c", doc! { "k": 1 }).await;
    insert(&mut c, "c", 0..100).await;
    c.ok(move_range("c", "s0", 50, Bson::MaxKey)).await;
    (cluster, c)
}
async fn count(c: &mut Client, coll: &str, filter: Document) -> usize {
    c.all(doc! { "find": coll, "filter": filter }).await.len()
}
async fn consistent(c: &mut Client) {
    let told = c.all(doc! { "checkMetadataConsistency": 1, "$db": "admin" }).await;
    assert!(told.is_empty(), "{told:?}");
}
fn index(coll: &str, key: Document, name: &str) -> Document {
    let mut one = doc! { "name": name };
    one.push("key", key);
    doc! { "createIndexes": coll, "indexes": vec![Bson::from(one)] }
}

#[test]
fn definitions_are_coordinated_by_config_servers_that_are_the_primary_shard() {
    run(async {
        let (cluster, mut c) = begun().await;
        let (mut config, mut shard) = (cluster.config_server().await, cluster.shard(0).await);
        c.ok(index("c", doc! { "k": 1, "n": 1 }, "kn")).await;
        let refine =
            doc! { "refineCollectionShardKey": "test.c", "key": doc! { "k": 1, "n": 1 }, "$db": "admin" };
        c.ok(refine).await;
        c.ok(doc! { "collMod": "c", "validator": doc! { "k": doc! { "$gte": 0 } } }).await;
        assert_eq!(c.err(doc! { "dropIndexes": "c", "index": "kn" }).await.0, 370);
        for node in [&mut config, &mut shard] {
            assert_eq!(node.all(doc! { "listIndexes": "c" }).await.len(), 3);
        }
        consistent(&mut c).await;
        c.ok(doc! { "renameCollection": "test.c", "to": "test.d", "$db": "admin" }).await;
        assert_eq!((count(&mut c, "d", doc! {}).await, count(&mut c, "c", doc! {}).await), (100, 0));
        assert_eq!((keys(&mut config, "d").await.len(), keys(&mut shard, "d").await.len()), (50, 50));
        let update = doc! { "q": doc! {}, "u": doc! { "$inc": doc! { "x": 1 } }, "multi": true };
        let done = c.ok(doc! { "update": "d", "updates": vec![Bson::from(update)] }).await;
        assert_eq!(done.get("nModified").and_then(Bson::as_i64), Some(100));
        c.ok(doc! { "drop": "d" }).await;
        c.ok(doc! { "create": "v", "viewOn": "plain", "pipeline": Vec::<Bson>::new() }).await;
        insert(&mut c, "plain", 0..5).await;
        assert_eq!(count(&mut c, "v", doc! {}).await, 5);
        consistent(&mut c).await;
        let listed = c.admin(doc! { "listDatabases": 1, "nameOnly": true }).await;
        let listed = listed.get("databases").and_then(Bson::as_array).unwrap();
        let names: Vec<&str> = listed.iter().map(|d| text(d.as_doc().unwrap(), "name")).collect();
        assert_eq!(names, ["admin", "config", "test"]);
        c.ok(doc! { "dropDatabase": 1 }).await;
        for node in [&mut config, &mut shard] {
            assert!(node.all(doc! { "listCollections": 1 }).await.is_empty());
        }
        // Their own databases stay what they are.
        for db in ["admin", "config"] {
            assert_eq!(c.err(doc! { "movePrimary": db, "to": "s0", "$db": "admin" }).await.0, 72);
            assert_eq!(c.err(doc! { "dropDatabase": 1, "$db": db }).await.0, 20);
        }
        cluster.shut_down().await;
    });
}

#[test]
fn a_transaction_has_config_servers_among_its_shards() {
    run(async {
        let (cluster, mut c) = begun().await;
        // A shard that has to ask first ends a transaction.
        assert_eq!(count(&mut c, "c", doc! {}).await, 100);
        let id = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] });
        for (number, end) in [(1_i64, "commitTransaction"), (2, "abortTransaction")] {
            let within = |mut command: Document, begins: bool| {
                command.push("lsid", doc! { "id": id.clone() });
                command.push("txnNumber", number);
                command.push("autocommit", false);
                begins.then(|| command.push("startTransaction", true));
                command
            };
            let one = doc! { "q": doc! { "k": 10 }, "u": doc! { "$inc": doc! { "n": 1 } } };
            let update = doc! { "update": "c", "updates": vec![Bson::from(one)] };
            assert_eq!(c.ok(within(update, true)).await.get("n").and_then(Bson::as_i64), Some(1));
            let read = within(doc! { "find": "c", "filter": doc! { "k": 60 } }, false);
            assert!(c.ok(read).await.get("cursor").is_some());
            let mut over = within(command(end), false);
            over.remove("$db");
            over.push("$db", "admin");
            c.ok(over).await;
            assert_eq!(count(&mut c, "c", doc! { "n": 1 }).await, 1, "{end}");
        }
        cluster.shut_down().await;
    });
}

/// The collections that are dropped here in the end are other shards' by then.
#[test]
fn who_watches_the_cluster_sees_nothing_of_what_config_servers_clear_away() {
    run(async {
        let (cluster, mut c) = begun().await;
        let mut open = doc! { "aggregate": 1, "cursor": doc! {} };
        open.push(
            "pipeline",
            vec![Bson::from(doc! { "$changeStream": doc! { "allChangesForCluster": true } })],
        );
        open.push("$db", "admin");
        let opened = c.ok(open).await;
        let cursor = opened.get("cursor").and_then(Bson::as_doc).unwrap();
        let id = cursor.get("id").and_then(Bson::as_i64).unwrap();
        insert(&mut c, "plain", 0..1).await;
        insert(&mut c, "c", 1000..1001).await;
        c.ok(command(TO)).await;
        c.ok(doc! { "balancerStart": 1, "$db": "admin" }).await;
        c.ok(move_primary("s0")).await;
        until_dedicated(&mut c).await;
        insert(&mut c, "c", 1001..1002).await;
        let mut seen = Vec::new();
        for _ in 0..200 {
            let more =
                doc! { "getMore": id, "collection": "$cmd.aggregate", "maxTimeMS": 50, "$db": "admin" };
            let reply = c.ok(more).await;
            let batch = reply.get("cursor").and_then(Bson::as_doc).and_then(|d| d.get("nextBatch")).cloned();
            for event in batch.as_ref().and_then(Bson::as_array).unwrap_or_default() {
                let event = event.as_doc().unwrap();
                let of = event.get("ns").and_then(Bson::as_doc).map(|ns| text(ns, "coll").to_owned());
                seen.push(format!("{} {}", text(event, "operationType"), of.unwrap_or_default()));
            }
            if seen.iter().filter(|s| *s == "insert c").count() == 2 {
                break;
            }
        }
        assert_eq!(seen, ["insert plain", "insert c", "insert c"]);
        cluster.shut_down().await;
    });
}

#[test]
fn what_config_servers_have_all_shards_do_they_do_as_a_shard_as_well() {
    run(async {
        let (cluster, mut c) = begun().await;
        let block = |on: bool| doc! { "setUserWriteBlockMode": 1, "global": on, "$db": "admin" };
        let kept = async || {
            let mut config = cluster.config_server().await;
            let all = config.all(doc! { "find": "user_writes_critical_sections", "$db": "config" }).await;
            all.iter().filter(|d| d.get("blockUserWrites").is_some_and(Bson::is_truthy)).count()
        };
        c.ok(block(true)).await;
        for k in [1, 51] {
            let insert = doc! { "insert": "c", "documents": vec![Bson::from(doc! { "k": k })] };
            let reply = c.run(insert).await;
            assert!(format!("{reply:?}").contains("371"), "{reply:?}");
        }
        assert_eq!(kept().await, 1);
        // They leave and come back while nobody may write.
        c.ok(command(TO)).await;
        c.ok(doc! { "balancerStart": 1, "$db": "admin" }).await;
        c.ok(move_primary("s0")).await;
        until_dedicated(&mut c).await;
        assert_eq!(kept().await, 1);
        c.ok(command(FROM)).await;
        assert_eq!(kept().await, 1);
        let create = doc! { "create": "x", "$db": "mine" };
        assert_eq!(cluster.config_server().await.err(create).await.0, 371);
        c.ok(block(false)).await;
        assert_eq!(kept().await, 0);
        insert(&mut c, "c", 200..210).await;
        for wanted in ["6.0", "7.0"] {
            let to = doc! { "setFeatureCompatibilityVersion": wanted, "confirm": true, "$db": "admin" };
            c.ok(to).await;
            for node in [&mut cluster.config_server().await, &mut cluster.shard(0).await] {
                let get = doc! { "getParameter": 1, "featureCompatibilityVersion": 1 };
                let shown = node.admin(get).await;
                let shown = shown.get("featureCompatibilityVersion").and_then(Bson::as_doc).cloned();
                assert_eq!(text(&shown.unwrap(), "version"), wanted);
            }
        }
        cluster.shut_down().await;
    });
}
