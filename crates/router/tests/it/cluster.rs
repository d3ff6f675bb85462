//! Whole clusters: routers in front of shards, with config servers that know who owns what.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_command::roles::ClusterRole;
use pando_testserver::{Client, Cluster, Set, run, spawn};

fn numbers(from: i32, to: i32) -> Vec<Bson> {
    let words = ["a", "B", "b", "C", "\u{e9}", "A"];
    let doc = |i: i32| doc! { "_id": i, "k": i * 10, "g": i % 7, "s": words[i as usize % words.len()] };
    (from..to).map(|i| doc(i).into()).collect()
}
async fn insert(c: &mut Client, coll: &str, docs: Vec<Bson>) -> Document {
    let mut command = doc! { "insert": coll };
    command.push("documents", docs);
    c.ok(command).await
}
async fn count(c: &mut Client, coll: &str, filter: Document) -> i64 {
    let pipeline = vec![Bson::from(doc! { "$match": filter }), doc! { "$count": "n" }.into()];
    let mut command = doc! { "aggregate": coll };
    command.push("pipeline", pipeline);
    command.push("cursor", doc! {});
    c.all(command).await.first().map_or(0, |d| d.get("n").and_then(Bson::as_i64).unwrap())
}
fn number(reply: &Document, field: &str) -> i64 {
    reply.get(field).and_then(Bson::as_i64).unwrap_or(-1)
}
/// Two zones, so that a collection by `k` begins on both shards.
async fn zones(c: &mut Client, ns: &str) {
    for (shard, zone, min, max) in
        [("s0", "low", Bson::MinKey, Bson::Int32(500)), ("s1", "high", Bson::Int32(500), Bson::MaxKey)]
    {
        c.ok(doc! { "addShardToZone": shard, "zone": zone, "$db": "admin" }).await;
        let mut range = doc! { "updateZoneKeyRange": ns };
        range.push("min", doc! { "k": min });
        range.push("max", doc! { "k": max });
        range.push("zone", zone);
        range.push("$db", "admin");
        c.ok(range).await;
    }
}

#[test]
fn a_collection_over_shards_answers_as_one_on_a_single_set() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        zones(&mut c, "test.ranged").await;
        cluster.shard_collection("test.ranged", doc! { "k": 1 }).await;
        cluster.shard_collection("test.hashed", doc! { "_id": "hashed" }).await;
        for coll in ["plain", "ranged", "hashed"] {
            assert_eq!(number(&insert(&mut c, coll, numbers(0, 100)).await, "n"), 100, "{coll}");
        }
        for shard in 0..2 {
            let mut direct = cluster.shard(shard).await;
            for coll in ["ranged", "hashed"] {
                assert!(count(&mut direct, coll, doc! {}).await > 10, "{coll} on s{shard}");
            }
        }
        let find = |coll: &str, rest: Document| {
            let mut command = doc! { "find": coll };
            rest.iter().for_each(|(name, v)| command.push(name, v.clone()));
            command
        };
        for rest in [
            doc! { "sort": { "k": -1 }, "limit": 7 },
            doc! { "sort": { "g": 1, "_id": 1 }, "skip": 20, "limit": 30, "batchSize": 4 },
            doc! { "filter": { "k": { "$gte": 450, "$lt": 550 } }, "sort": { "_id": 1 } },
            doc! { "filter": { "g": 3 }, "sort": { "_id": 1 }, "projection": { "k": 1 } },
            doc! { "filter": { "_id": 77 } },
            doc! { "sort": { "s": 1, "_id": 1 }, "collation": { "locale": "en", "strength": 2 } },
            doc! { "sort": { "s": -1, "_id": 1 }, "collation": { "locale": "fr", "strength": 1 }, "limit": 40 },
        ] {
            let plain = c.all(find("plain", rest.clone())).await;
            assert!(!plain.is_empty());
            for coll in ["ranged", "hashed"] {
                assert_eq!(c.all(find(coll, rest.clone())).await, plain, "{coll} {rest:?}");
            }
        }
        for coll in ["plain", "ranged", "hashed"] {
            let mut update = doc! { "update": coll };
            update.push(
                "updates",
                vec![Bson::from(doc! { "q": { "g": 3 }, "u": { "$set": { "x": 1 } }, "multi": true })],
            );
            assert_eq!(number(&c.ok(update).await, "nModified"), 14, "{coll}");
            let mut delete = doc! { "delete": coll };
            delete.push("deletes", vec![Bson::from(doc! { "q": { "g": 5 }, "limit": 0 })]);
            assert_eq!(number(&c.ok(delete).await, "n"), 14, "{coll}");
            assert_eq!(count(&mut c, coll, doc! { "x": 1 }).await, 14);
            assert_eq!(count(&mut c, coll, doc! {}).await, 86);
            let distinct = c.ok(doc! { "distinct": coll, "key": "g" }).await;
            assert_eq!(distinct.get("values").and_then(Bson::as_array).unwrap().len(), 6);
        }
        cluster.shut_down().await;
    });
}

/// Documents that a shard does not own: a migration that was given up leaves such, here somebody writes them past the router.
#[test]
fn what_a_shard_does_not_own_is_seen_by_nobody_who_asks_a_router() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        zones(&mut c, "test.ranged").await;
        cluster.shard_collection("test.ranged", doc! { "k": 1 }).await;
        insert(&mut c, "ranged", numbers(0, 100)).await;
        let index = doc! { "key": { "g": 1, "k": 1 }, "name": "gk" };
        let mut indexes = doc! { "createIndexes": "ranged" };
        indexes.push("indexes", vec![Bson::from(index), doc! { "key": { "g": 1 }, "name": "g" }.into()]);
        c.ok(indexes).await;
        let mut direct = cluster.shard(0).await;
        let orphans: Vec<Bson> =
            (0..10).map(|i| doc! { "_id": 1000 + i, "k": 600 + i, "g": 3 }.into()).collect();
        insert(&mut direct, "ranged", orphans).await;
        assert_eq!(count(&mut direct, "ranged", doc! { "_id": { "$gte": 1000 } }).await, 10);
        assert_eq!(count(&mut c, "ranged", doc! { "_id": { "$gte": 1000 } }).await, 0);
        assert_eq!(c.all(doc! { "find": "ranged", "filter": { "_id": 1005 } }).await, []);
        for hint in ["g", "gk", "_id_"] {
            let found = c.all(doc! { "find": "ranged", "filter": { "g": 3 }, "hint": hint }).await;
            assert_eq!(found.len(), 14, "{hint}");
            let covered = doc! { "find": "ranged", "filter": { "g": 3 }, "hint": hint, "projection": { "_id": 0, "g": 1 } };
            assert_eq!(c.all(covered).await.len(), 14, "{hint}, covered");
        }
        let distinct = c.ok(doc! { "distinct": "ranged", "key": "k", "query": { "g": 3 } }).await;
        assert_eq!(distinct.get("values").and_then(Bson::as_array).unwrap().len(), 14);
        let mut update = doc! { "update": "ranged" };
        update.push(
            "updates",
            vec![Bson::from(doc! { "q": { "g": 3 }, "u": { "$set": { "x": 1 } }, "multi": true })],
        );
        assert_eq!(number(&c.ok(update).await, "n"), 14);
        let mut delete = doc! { "delete": "ranged" };
        delete.push("deletes", vec![Bson::from(doc! { "q": { "_id": { "$gte": 1000 } }, "limit": 0 })]);
        assert_eq!(number(&c.ok(delete).await, "n"), 0);
        assert_eq!(
            count(&mut direct, "ranged", doc! { "x": { "$exists": 0 }, "_id": { "$gte": 1000 } }).await,
            10
        );
        let plan = c.ok(doc! { "explain": { "find": "ranged", "filter": { "g": 3 }, "hint": "g" } }).await;
        assert!(format!("{plan:?}").contains("SHARDING_FILTER"), "{plan:?}");
        cluster.shut_down().await;
    });
}

#[test]
fn a_router_with_an_old_view_learns_before_anything_is_written_or_read_wrongly() {
    run(async {
        let mut cluster = Cluster::of(2, 2).await;
        let (mut here, mut there) = (cluster.router(0).await, cluster.router(1).await);
        here.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        insert(&mut there, "c", numbers(0, 50)).await;
        here.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "k": 1 }, "name": "k" }] }).await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        // It thinks that nothing is sharded.
        assert_eq!(number(&insert(&mut there, "c", numbers(50, 60)).await, "n"), 10);
        assert_eq!(count(&mut there, "c", doc! {}).await, 60);
        // Dropped and made anew by another key, with another first part on another shard.
        assert_eq!(count(&mut here, "c", doc! {}).await, 60);
        here.ok(doc! { "drop": "c" }).await;
        cluster.shard_collection("test.c", doc! { "_id": "hashed" }).await;
        assert_eq!(count(&mut there, "c", doc! {}).await, 0);
        assert_eq!(number(&insert(&mut there, "c", numbers(0, 100)).await, "n"), 100);
        assert_eq!(count(&mut here, "c", doc! {}).await, 100);
        assert_eq!(here.all(doc! { "find": "c", "filter": { "_id": 42 } }).await.len(), 1);
        // The same again, as no collection of the cluster's.
        here.ok(doc! { "drop": "c" }).await;
        assert_eq!(number(&insert(&mut there, "c", numbers(0, 10)).await, "n"), 10);
        assert_eq!(count(&mut here, "c", doc! {}).await, 10);
        // Shards and config servers remember nothing that is not on disk.
        cluster.restart_shard(0).await;
        cluster.restart_config_server().await;
        let mut there = cluster.router(1).await;
        assert_eq!(count(&mut there, "c", doc! {}).await, 10);
        here.ok(doc! { "dropDatabase": 1 }).await;
        assert_eq!(count(&mut there, "c", doc! {}).await, 0);
        insert(&mut there, "c", numbers(0, 5)).await;
        assert_eq!(count(&mut here, "c", doc! {}).await, 5);
        cluster.shut_down().await;
    });
}

#[test]
fn a_shard_that_begins_anew_has_heard_of_what_it_has_done() {
    run(async {
        let mut cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        cluster.shard_collection("test.c", doc! { "_id": "hashed" }).await;
        let collections = doc! { "find": "collections", "filter": { "_id": "test.c" }, "$db": "config" };
        let time = |d: &Document, name: &str| match d.get(name) {
            Some(Bson::Timestamp(at)) => *at,
            other => panic!("{name}: {other:?}"),
        };
        let made = time(&c.all(collections).await[0], "timestamp");
        // Nobody tells it anything.
        cluster.lose_config_server().await;
        cluster.restart_shard(0).await;
        let mut shard = cluster.shard(0).await;
        let kept = shard.all(doc! { "find": "vectorClock", "$db": "config" }).await;
        assert!(time(&kept[0], "configTime") > made, "{kept:?}");
        let version = doc! { "minWireVersion": 0, "maxWireVersion": 21 };
        shard.admin(doc! { "hello": 1, "internalClient": version }).await;
        let reply = shard.admin(doc! { "ping": 1 }).await;
        assert!(time(&reply, "$configTime") >= time(&kept[0], "configTime"), "{reply:?}");
    });
}

#[test]
fn nothing_that_is_written_while_a_collection_becomes_sharded_is_lost() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        c.ok(doc! { "create": "c" }).await;
        let writers: Vec<_> = (0..4)
            .map(|w| {
                let connecting = cluster.router(0);
                (w, connecting)
            })
            .collect();
        let mut tasks = Vec::new();
        for (w, connecting) in writers {
            let mut c = connecting.await;
            tasks.push(spawn(async move {
                let mut acknowledged = 0;
                for i in 0..60 {
                    let doc = doc! { "_id": w * 1000 + i };
                    let reply = c.run(doc! { "insert": "c", "documents": [doc], "$db": "test" }).await;
                    acknowledged += number(&reply, "n").max(0);
                }
                acknowledged
            }));
        }
        let sharding = c.run(doc! { "shardCollection": "test.c", "key": { "_id": 1 }, "$db": "admin" }).await;
        assert_eq!(number(&sharding, "ok"), 1, "{sharding:?}");
        let mut acknowledged = 0;
        for task in tasks {
            acknowledged += task.await.unwrap();
        }
        assert_eq!(acknowledged, 240);
        assert_eq!(count(&mut c, "c", doc! {}).await, 240);
        cluster.shut_down().await;
    });
}

/// What a router sends by the key that a query names must not end up where nobody looks for it.
#[test]
fn an_update_does_not_put_a_document_where_nobody_looks_for_it() {
    run(async {
        let cluster = Cluster::of(2, 2).await;
        let (mut c, mut old) = (cluster.router(0).await, cluster.router(1).await);
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        c.ok(doc! { "create": "ranged" }).await;
        assert_eq!(count(&mut old, "ranged", doc! {}).await, 0);
        zones(&mut c, "test.ranged").await;
        cluster.shard_collection("test.ranged", doc! { "k": 1 }).await;
        let upsert = doc! { "q": { "_id": 1, "k": 900 }, "u": { "$set": { "k": 5 } }, "upsert": true };
        let array = doc! { "q": { "_id": 2, "k": 900 }, "u": { "$set": { "k": [1, 2] } }, "upsert": true };
        c.ok(doc! { "insert": "ranged", "documents": vec![Bson::from(doc! { "_id": 3, "k": 900 })] }).await;
        let set = doc! { "$set": { "k": 5 } };
        let many = doc! { "q": { "k": 900 }, "u": set.clone(), "multi": true };
        let one = doc! { "q": { "k": 900 }, "u": set };
        for (update, code) in
            [(upsert, "Int32(20)"), (array, "Int32(54)"), (many, "Int32(72)"), (one, "Int32(20)")]
        {
            let mut command = doc! { "update": "ranged" };
            command.push("updates", vec![Bson::from(update)]);
            command.push("$db", "test");
            let reply = c.run(command).await;
            assert_eq!(number(&reply, "n"), 0, "{reply:?}");
            assert!(format!("{reply:?}").contains(code), "{reply:?}");
        }
        let deletes = vec![Bson::from(doc! { "q": { "k": 900 }, "limit": 1 })];
        c.ok(doc! { "delete": "ranged", "deletes": deletes }).await;
        for shard in 0..2 {
            assert_eq!(count(&mut cluster.shard(shard).await, "ranged", doc! {}).await, 0);
        }
        // A router that takes the collection for unsharded has indexes made on one shard; it is told, and makes them on both.
        let mut indexes = doc! { "createIndexes": "ranged" };
        indexes.push("indexes", vec![Bson::from(doc! { "key": { "z": 1 }, "name": "z" })]);
        old.ok(indexes).await;
        for shard in 0..2 {
            let found = cluster.shard(shard).await.all(doc! { "listIndexes": "ranged" }).await;
            let names: Vec<_> = found.iter().filter_map(|d| d.get("name").and_then(Bson::as_str)).collect();
            assert!(names.contains(&"z"), "s{shard}: {names:?}");
        }
        cluster.shut_down().await;
    });
}

/// A pipeline whose own documents lie on one shard reads the whole of a view on the same collection.
#[test]
fn a_view_on_the_same_collection_is_read_as_a_whole() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        zones(&mut c, "test.ranged").await;
        cluster.shard_collection("test.ranged", doc! { "k": 1 }).await;
        insert(&mut c, "ranged", numbers(0, 100)).await;
        c.ok(doc! { "create": "seen", "viewOn": "ranged", "pipeline": [{ "$match": { "g": 3 } }] }).await;
        let join = doc! { "from": "seen", "localField": "g", "foreignField": "g", "as": "j" };
        // On the shard that has the view, and on the other one.
        for (k, of_other) in [(30, 14), (110, 0), (660, 14)] {
            let matched = doc! { "$match": { "k": k } };
            for (stage, n) in [(doc! { "$unionWith": "seen" }, 15), (doc! { "$lookup": join.clone() }, 1)] {
                let mut command = doc! { "aggregate": "ranged", "cursor": {} };
                command.push("pipeline", vec![Bson::from(matched.clone()), stage.into()]);
                let rows = c.all(command).await;
                assert_eq!(rows.len(), n, "{k}");
                if let Some(joined) = rows[0].get("j").and_then(Bson::as_array) {
                    assert_eq!(joined.len(), of_other, "{k}");
                }
            }
        }
        cluster.shut_down().await;
    });
}

/// The next events of a stream, as many as are wanted.
async fn events(c: &mut Client, resume: Option<Bson>, before: Option<Vec<Bson>>, n: usize) -> Vec<Document> {
    let mut stage = doc! {};
    if let Some(token) = resume {
        stage.push("resumeAfter", token);
    }
    let mut open = doc! { "aggregate": "hashed" };
    open.push("pipeline", vec![Bson::from(doc! { "$changeStream": stage })]);
    open.push("cursor", doc! {});
    let reply = c.ok(open).await;
    if let Some(docs) = before {
        insert(c, "hashed", docs).await;
    }
    let cursor = reply.get("cursor").and_then(Bson::as_doc).unwrap().clone();
    let id = cursor.get("id").cloned().unwrap();
    let batch = |cursor: &Document, name: &str| -> Vec<Document> {
        let all = cursor.get(name).and_then(Bson::as_array).unwrap_or_default();
        all.iter().filter_map(|d| d.as_doc().cloned()).collect()
    };
    let mut found = batch(&cursor, "firstBatch");
    for _ in 0..60 {
        if found.len() >= n {
            break;
        }
        let mut more = doc! { "getMore": id.clone(), "collection": "hashed", "maxTimeMS": 500 };
        more.push("$db", "test");
        let reply = c.ok(more).await;
        found.extend(batch(reply.get("cursor").and_then(Bson::as_doc).unwrap(), "nextBatch"));
    }
    found
}

#[test]
fn a_stream_over_shards_goes_on_behind_any_event() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        cluster.shard_collection("test.hashed", doc! { "_id": "hashed" }).await;
        let first = events(&mut c, None, Some(numbers(0, 20)), 15).await;
        assert!(first.len() >= 15, "{}", first.len());
        for at in [0, 1, 2, 7] {
            let token = first[at].get("_id").cloned();
            let again = events(&mut c, token, None, 14 - at).await;
            let ids = |events: &[Document]| -> Vec<Bson> {
                events.iter().filter_map(|e| e.get("documentKey").cloned()).collect()
            };
            assert_eq!(ids(&again)[..14 - at], ids(&first)[at + 1..15], "behind {at}");
        }
        cluster.shut_down().await;
    });
}

#[test]
fn secondaries_judge_by_what_their_data_has_reached() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let set = Set::configured(3, |c| c.cluster_role = Some(ClusterRole::Shard)).await;
        let mut c = cluster.router(0).await;
        let hosts: Vec<String> = (0..3).map(|i| set.host(i)).collect();
        c.ok(doc! { "addShard": format!("rs/{}", hosts.join(",")), "name": "s1", "$db": "admin" }).await;
        // Who does not know yet that it is a shard takes no command of one (203).
        set.until("all members know that they are a shard", async |set| {
            for i in 0..3 {
                let mut find =
                    doc! { "find": "system.version", "filter": { "_id": "shardIdentity" }, "$db": "admin" };
                find.push("$readPreference", doc! { "mode": "nearest" });
                if set.connect(i).await.all(find).await.is_empty() {
                    return false;
                }
            }
            true
        })
        .await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        zones(&mut c, "test.c").await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        assert_eq!(number(&insert(&mut c, "c", numbers(0, 100)).await, "n"), 100);
        let read = |limit_ms: i32| {
            let mut find = doc! { "find": "c", "filter": { "k": { "$gte": 500 } }, "batchSize": 1000 };
            find.push("$readPreference", doc! { "mode": "secondary" });
            find.push("readConcern", doc! { "level": "majority" });
            find.push("maxTimeMS", limit_ms);
            find
        };
        assert_eq!(c.all(read(20_000)).await.len(), 50);
        // What the primary has learnt stands in the data of all.
        for i in 0..3 {
            let mut member = set.connect(i).await;
            let mut find = doc! { "find": "cache.chunks.test.c", "sort": { "_id": 1 }, "$db": "config" };
            find.push("$readPreference", doc! { "mode": "nearest" });
            let chunks = member.all(find).await;
            let shards: Vec<_> = chunks.iter().map(|d| d.get("shard").and_then(Bson::as_str)).collect();
            assert_eq!(shards, [Some("s0"), Some("s1")], "member {i}");
        }
        // Who lags behind does not answer for what it will own.
        let late = set.secondaries().await[0];
        set.fail_point(late, "rsSyncApplyStop", true).await;
        c.ok(doc! { "drop": "c" }).await;
        zones(&mut c, "test.c").await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        let mut insert = doc! { "insert": "c", "writeConcern": doc! { "w": "majority" } };
        insert.push("documents", numbers(50, 70));
        c.ok(insert).await;
        let mut find = doc! { "find": "c", "maxTimeMS": 1000, "$db": "test" };
        find.push("$readPreference", doc! { "mode": "secondary" });
        find.push("shardVersion", version_of(&mut c, "test.c", "s1").await);
        let mut member = set.connect(late).await;
        for _ in 0..3 {
            let reply = member.run(find.clone()).await;
            assert_ne!(number(&reply, "ok"), 1, "{reply:?}");
        }
        set.fail_point(late, "rsSyncApplyStop", false).await;
        find.remove("maxTimeMS");
        let reply = match member.run(find.clone()).await {
            refused if number(&refused, "ok") != 1 => member.run(find).await,
            reply => reply,
        };
        let first = reply.get("cursor").and_then(Bson::as_doc).and_then(|d| d.get("firstBatch"));
        assert_eq!(first.and_then(Bson::as_array).map(<[Bson]>::len), Some(20), "{reply:?}");
        set.shut_down().await;
        cluster.shut_down().await;
    });
}

/// What a router that knows everything believes of a shard's part.
async fn version_of(c: &mut Client, ns: &str, shard: &str) -> Document {
    let find = doc! { "find": "collections", "filter": { "_id": ns }, "$db": "config" };
    let entry = c.all(find).await.remove(0);
    let mut find = doc! { "find": "chunks", "sort": { "lastmod": -1 }, "$db": "config" };
    find.push("filter", doc! { "uuid": entry.get("uuid").unwrap().clone(), "shard": shard });
    let newest = c.all(find).await.remove(0);
    let field = |d: &Document, name: &str| d.get(name).unwrap().clone();
    doc! { "t": field(&entry, "timestamp"), "e": field(&entry, "lastmodEpoch"), "v": field(&newest, "lastmod") }
}

/// Whoever asks it anew elsewhere would believe that nothing of the transaction will ever be seen.
#[test]
fn a_router_that_did_not_begin_a_transaction_does_not_say_that_there_was_none() {
    run(async {
        let cluster = Cluster::of(1, 2).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "create": "c" }).await;
        let within = |mut body: Document| {
            let id = pando_bson::Binary { subtype: 4, bytes: vec![5; 16] };
            body.push("lsid", doc! { "id": Bson::Binary(id) });
            body.push("txnNumber", 1_i64);
            body.push("autocommit", false);
            body
        };
        let mut insert = within(doc! { "insert": "c", "documents": [{ "_id": 1 }] });
        insert.push("startTransaction", true);
        c.ok(insert).await;
        let commit = || {
            let mut body = within(doc! { "commitTransaction": 1 });
            body.push("$db", "admin");
            body
        };
        let mut other = cluster.router(1).await;
        let reply = other.run(commit()).await;
        assert_eq!(number(&reply, "code"), 50940, "{reply:?}");
        assert!(!reply.contains("errorLabels"), "{reply:?}");
        c.ok(commit()).await;
        assert_eq!(count(&mut other, "c", doc! {}).await, 1);
        cluster.shut_down().await;
    });
}

/// A shard that took part in a drop does not take what it knew before for what is: the first of those who write by an old table is
/// refused, and the shard asks before it judges the second.
#[test]
fn who_writes_by_an_old_table_does_not_write_into_what_was_dropped() {
    run(async {
        let cluster = Cluster::of(2, 3).await;
        let mut c = cluster.router(0).await;
        c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
        zones(&mut c, "test.c").await;
        cluster.shard_collection("test.c", doc! { "k": 1 }).await;
        let mut old = [cluster.router(1).await, cluster.router(2).await];
        for (i, router) in old.iter_mut().enumerate() {
            insert(router, "c", vec![doc! { "_id": i as i32, "k": 900 }.into()]).await;
        }
        c.ok(doc! { "drop": "c" }).await;
        for (i, router) in old.iter_mut().enumerate() {
            insert(router, "c", vec![doc! { "_id": i as i32, "k": 900 }.into()]).await;
        }
        assert_eq!(count(&mut c, "c", doc! {}).await, 2);
        assert_eq!(count(&mut cluster.shard(1).await, "c", doc! {}).await, 0);
        cluster.shut_down().await;
    });
}
