//! What an attack on clusters by their documentation alone has left: each of these was wrong once.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Cluster, run};
use std::time::{Duration, Instant};

/// Two shards, a collection by `k` with a boundary at 500, and one by hash.
async fn cluster() -> (Cluster, Client) {
    let cluster = Cluster::of(2, 1).await;
    let mut c = cluster.router(0).await;
    c.ok(doc! { "enableSharding": "test", "primaryShard": "s0", "$db": "admin" }).await;
    for (shard, zone, min, max) in
        [("s0", "low", Bson::MinKey, Bson::Int32(500)), ("s1", "high", Bson::Int32(500), Bson::MaxKey)]
    {
        c.ok(doc! { "addShardToZone": shard, "zone": zone, "$db": "admin" }).await;
        let (min, max) = (doc! { "k": min }, doc! { "k": max });
        c.ok(doc! { "updateZoneKeyRange": "test.ranged", "min": min, "max": max, "zone": zone, "$db": "admin" }).await;
    }
    cluster.shard_collection("test.ranged", doc! { "k": 1 }).await;
    cluster.shard_collection("test.hashed", doc! { "_id": "hashed" }).await;
    (cluster, c)
}

fn with(mut command: Document, name: &str, list: Vec<Bson>) -> Document {
    command.push(name, list);
    command
}

async fn fill(c: &mut Client, coll: &str, n: i32) {
    let docs = (0..n).map(|i| doc! { "_id": i, "k": i * 10, "n": i % 5 }.into()).collect();
    c.ok(with(doc! { "insert": coll }, "documents", docs)).await;
}

fn batch(reply: &Document, name: &str) -> Vec<Document> {
    let cursor = reply.get("cursor").and_then(Bson::as_doc).unwrap();
    let all = cursor.get(name).and_then(Bson::as_array).unwrap_or_default();
    all.iter().filter_map(|d| d.as_doc().cloned()).collect()
}

#[test]
fn options_of_find_reach_all_shards() {
    run(async {
        let (cluster, mut c) = cluster().await;
        fill(&mut c, "ranged", 100).await;
        c.ok(doc! { "createIndexes": "ranged", "indexes": [{ "key": { "n": 1, "k": 1 }, "name": "n" }] })
            .await;
        let find = doc! { "find": "ranged", "filter": { "n": { "$gte": 3 } }, "sort": { "n": -1, "k": 1 }, "hint": "n", "returnKey": true };
        let rows = c.all(find).await;
        assert_eq!(rows.len(), 40);
        assert_eq!(
            (rows[0].clone(), rows[39].clone()),
            (doc! { "n": 4, "k": 40 }, doc! { "n": 3, "k": 980 })
        );
        // The sort is the router's, the key is the index's.
        let find = doc! { "find": "ranged", "filter": { "n": 3 }, "sort": { "_id": -1 }, "hint": "n", "returnKey": true, "limit": 2 };
        assert_eq!(c.all(find).await, [doc! { "n": 3, "k": 980 }, doc! { "n": 3, "k": 930 }]);
        let rows = c.all(doc! { "find": "ranged", "sort": { "k": 1 }, "showRecordId": true }).await;
        assert!(
            rows.len() == 100
                && rows.iter().all(|r| r.get("$recordId").is_some() && r.get("$sortKey").is_none())
        );
        let find = doc! { "find": "ranged", "min": { "n": 1, "k": 0 }, "max": { "n": 2, "k": 0 }, "hint": "n", "sort": { "k": -1 }, "limit": 3 };
        let ids: Vec<_> = c.all(find).await.iter().map(|d| d.get("_id").cloned().unwrap()).collect();
        assert_eq!(ids, [Bson::Int32(96), Bson::Int32(91), Bson::Int32(86)]);
        for option in ["allowDiskUse", "noCursorTimeout"] {
            let mut find = doc! { "find": "ranged", "sort": { "n": 1 }, "batchSize": 7 };
            find.push(option, true);
            assert_eq!(c.all(find).await.len(), 100, "{option}");
        }
        let (code, _) = c.err(doc! { "find": "ranged", "tailable": true }).await;
        assert_eq!(code, 2);
        c.ok(doc! { "create": "capped", "capped": true, "size": 100_000 }).await;
        c.ok(doc! { "insert": "capped", "documents": [{ "_id": 1 }] }).await;
        let reply = c.ok(doc! { "find": "capped", "tailable": true, "awaitData": true }).await;
        assert_eq!(batch(&reply, "firstBatch").len(), 1);
        c.ok(doc! { "insert": "capped", "documents": [{ "_id": 2 }] }).await;
        let id = reply.get("cursor").and_then(Bson::as_doc).and_then(|d| d.get("id")).cloned().unwrap();
        let more = c.ok(doc! { "getMore": id, "collection": "capped", "maxTimeMS": 2000 }).await;
        assert_eq!(batch(&more, "nextBatch"), [doc! { "_id": 2 }]);
        cluster.shut_down().await;
    });
}

#[test]
fn an_index_that_keeps_documents_different_begins_with_the_shard_key() {
    run(async {
        let (cluster, mut c) = cluster().await;
        for (key, code) in [
            (doc! { "n": 1 }, 67),
            (doc! { "n": 1, "k": 1 }, 67),
            (doc! { "k": 1, "n": 1 }, 0),
            (doc! { "_id": 1, "n": 1 }, 0),
        ] {
            let shown = format!("{key:?}");
            let index = doc! { "key": key, "name": shown.as_str(), "unique": true };
            let reply = c.run(with(doc! { "createIndexes": "ranged" }, "indexes", vec![index.into()])).await;
            let got = reply.get("code").and_then(Bson::as_i64).unwrap_or(0);
            assert_eq!(got, code, "{shown}: {reply:?}");
        }
        cluster.shut_down().await;
    });
}

async fn chunks(c: &mut Client, ns: &str) -> usize {
    let entry = c.all(doc! { "find": "collections", "filter": { "_id": ns }, "$db": "config" }).await;
    let uuid = entry[0].get("uuid").cloned().unwrap();
    c.all(doc! { "find": "chunks", "filter": { "uuid": uuid }, "$db": "config" }).await.len()
}

#[test]
fn chunks_are_split_at_keys_that_can_be_kept() {
    run(async {
        let (cluster, mut c) = cluster().await;
        fill(&mut c, "hashed", 100).await;
        let before = chunks(&mut c, "test.hashed").await;
        c.ok(doc! { "split": "test.hashed", "find": { "_id": 7 }, "$db": "admin" }).await;
        assert_eq!(chunks(&mut c, "test.hashed").await, before + 1);
        for (middle, code) in [
            (doc! { "k": [1, 2] }, 0),
            (doc! { "x": 1 }, 0),
            (doc! { "k": 500 }, 0),
            (doc! { "k": { "$gt": 1 } }, 2),
            (doc! { "k": { "a": { "$b": 1 } } }, 2),
        ] {
            let shown = format!("{middle:?}");
            let (got, text) = c.err(doc! { "split": "test.ranged", "middle": middle, "$db": "admin" }).await;
            assert_eq!(got, code, "{shown}: {text}");
        }
        c.ok(doc! { "split": "test.ranged", "middle": { "k": { "a": 1 } }, "$db": "admin" }).await;
        assert_eq!(chunks(&mut c, "test.ranged").await, 3);
        cluster.shut_down().await;
    });
}

#[test]
fn an_array_is_no_shard_key() {
    run(async {
        let (cluster, mut c) = cluster().await;
        fill(&mut c, "ranged", 10).await;
        let array = || doc! { "$set": { "k": [1, 2] } };
        for (update, upsert) in [
            (Bson::from(array()), false),
            (doc! { "k": [1, 2] }.into(), false),
            (vec![Bson::from(array())].into(), false),
            (array().into(), true),
        ] {
            let mut one = doc! { "q": { "_id": if upsert { 77 } else { 1 }, "k": 10 }, "upsert": upsert };
            one.push("u", update);
            let reply = c.run(with(doc! { "update": "ranged" }, "updates", vec![one.into()])).await;
            let shown = format!("{reply:?}");
            let text = "the field 'k' was found to be an array or array descendant.";
            assert!(shown.contains("Int32(54)") && shown.contains(text), "{shown}");
        }
        let find_and_modify = doc! { "findAndModify": "ranged", "query": { "k": 10 }, "update": array() };
        assert_eq!(c.err(find_and_modify).await.0, 54);
        cluster.shut_down().await;
    });
}

async fn watch(c: &mut Client, coll: &str, stage: Document, rest: Vec<Bson>) -> Bson {
    let stages = [Bson::from(doc! { "$changeStream": stage })].into_iter().chain(rest).collect();
    let reply = c.ok(with(doc! { "aggregate": coll, "cursor": {} }, "pipeline", stages)).await;
    reply.get("cursor").and_then(Bson::as_doc).and_then(|d| d.get("id")).cloned().unwrap()
}

async fn events(c: &mut Client, coll: &str, id: &Bson, n: usize) -> Vec<Document> {
    let mut found = Vec::new();
    while found.len() < n {
        let more = c.ok(doc! { "getMore": id.clone(), "collection": coll, "maxTimeMS": 1000 }).await;
        found.extend(batch(&more, "nextBatch"));
    }
    found
}

#[test]
fn an_event_tells_the_shard_key_and_waits_for_no_idle_shard() {
    run(async {
        let (cluster, mut c) = cluster().await;
        let id = watch(&mut c, "ranged", doc! {}, Vec::new()).await;
        let begun = Instant::now();
        for step in 0..5 {
            c.ok(with(
                doc! { "insert": "ranged" },
                "documents",
                vec![Bson::from(doc! { "k": 7, "_id": step })],
            ))
            .await;
            let event = events(&mut c, "ranged", &id, 1).await.remove(0);
            assert_eq!(event.get("documentKey"), Some(&Bson::from(doc! { "k": 7, "_id": step })));
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let changes = vec![
            Bson::from(doc! { "q": { "_id": 1, "k": 7 }, "u": { "$set": { "k": 9 } } }),
            doc! { "q": { "_id": 2, "k": 7 }, "u": { "k": 8 } }.into(),
        ];
        c.ok(with(doc! { "update": "ranged" }, "updates", changes)).await;
        let gone = vec![Bson::from(doc! { "q": { "_id": 1 }, "limit": 1 })];
        c.ok(with(doc! { "delete": "ranged" }, "deletes", gone)).await;
        let told: Vec<String> = events(&mut c, "ranged", &id, 3)
            .await
            .iter()
            .map(|e| format!("{:?} {:?}", e.get("operationType").unwrap(), e.get("documentKey").unwrap()))
            .collect();
        let wanted = [("update", 9, 1), ("replace", 8, 2), ("delete", 9, 1)].map(|(kind, k, id)| {
            format!("{:?} {:?}", Bson::from(kind), Bson::from(doc! { "k": k, "_id": id }))
        });
        assert_eq!(told, wanted);
        cluster.shut_down().await;
    });
}

#[test]
fn a_token_of_no_event_is_refused() {
    run(async {
        let (cluster, mut c) = cluster().await;
        let other = watch(&mut c, "hashed", doc! {}, Vec::new()).await;
        fill(&mut c, "hashed", 3).await;
        let foreign = events(&mut c, "hashed", &other, 1).await[0].get("_id").cloned().unwrap();
        fill(&mut c, "ranged", 100).await;
        let mut stage = doc! {};
        stage.push("resumeAfter", foreign.clone());
        let id = watch(&mut c, "ranged", stage, Vec::new()).await;
        let mut failed = None;
        for _ in 0..20 {
            let reply = c.run(doc! { "getMore": id.clone(), "collection": "ranged", "maxTimeMS": 500 }).await;
            if reply.get("code").is_some() {
                failed = Some(reply);
                break;
            }
            assert!(batch(&reply, "nextBatch").is_empty(), "{reply:?}");
        }
        let failed = failed.unwrap();
        assert_eq!(failed.get("code"), Some(&Bson::Int32(280)), "{failed:?}");
        assert!(format!("{failed:?}").contains("the resume token was not found"), "{failed:?}");
        // What shards would refuse is refused where the stages stand here.
        let stages = vec![
            Bson::from(doc! { "$changeStream": { "fullDocument": "updateLookup" } }),
            doc! { "$group": { "_id": 1 } }.into(),
        ];
        let refused = with(doc! { "aggregate": "hashed", "cursor": {} }, "pipeline", stages);
        assert_eq!(c.err(refused).await.0, 20);
        // A stage that lets the event itself through to nobody does not hide that it is there.
        let mut stage = doc! {};
        stage.push("resumeAfter", foreign);
        let rest = vec![Bson::from(doc! { "$match": { "documentKey._id": 2 } })];
        let id = watch(&mut c, "hashed", stage, rest).await;
        let found = events(&mut c, "hashed", &id, 1).await;
        assert_eq!(found[0].get("documentKey"), Some(&Bson::from(doc! { "_id": 2 })));
        cluster.shut_down().await;
    });
}

#[test]
fn arguments_about_shards_have_their_types() {
    run(async {
        let (cluster, mut c) = cluster().await;
        for (name, v) in [
            ("numInitialChunks", Bson::from("many")),
            ("presplitHashedZones", Bson::from("yes")),
            ("implicitlyCreateIndex", Bson::from("yes")),
            ("collation", Bson::Int32(1)),
            ("unique", Bson::from("yes")),
            ("key", Bson::Int32(1)),
        ] {
            let mut command = doc! { "shardCollection": "test.typed", "key": { "a": 1 } };
            command.set(name, v);
            command.push("$db", "admin");
            let (code, text) = c.err(command).await;
            assert!(code == 14 && text.contains(&format!("{name}'")), "{name}: {code} {text}");
        }
        let (code, text) = c.err(doc! { "enableSharding": "other", "primaryShard": 7, "$db": "admin" }).await;
        assert!(code == 14 && text.contains("primaryShard"), "{code} {text}");
        cluster.shut_down().await;
    });
}

#[test]
fn groups_that_are_merged_spill_or_say_that_they_may_not() {
    run(async {
        let (cluster, mut c) = cluster().await;
        fill(&mut c, "hashed", 2000).await;
        c.ok(doc! { "setParameter": 1, "internalDocumentSourceGroupMaxMemoryBytes": 20_000, "$db": "admin" })
            .await;
        let group = |disk: bool| {
            let stages = vec![
                Bson::from(doc! { "$group": { "_id": "$k", "n": { "$sum": 1 }, "last": { "$max": "$n" } } }),
                doc! { "$sort": { "_id": 1 } }.into(),
            ];
            with(doc! { "aggregate": "hashed", "cursor": {}, "allowDiskUse": disk }, "pipeline", stages)
        };
        let (code, text) = c.err(group(false)).await;
        assert_eq!(code, 292, "{text}");
        let rows = c.all(group(true)).await;
        assert_eq!(rows.len(), 2000);
        assert_eq!(rows[1999].get("_id"), Some(&Bson::Int32(19_990)));
        cluster.shut_down().await;
    });
}

/// A view's values by a path with a number, and a `$merge` by fields that nothing makes unique.
#[test]
fn values_of_views_and_targets_of_merges_are_looked_at_as_on_one_set() {
    run(async {
        let (_cluster, mut c) = cluster().await;
        let docs = (0..4).map(|i| doc! { "_id": i, "k": i, "arr": [i, i + 1], "q": 5 }.into()).collect();
        c.ok(with(doc! { "insert": "hashed" }, "documents", docs)).await;
        c.ok(doc! { "create": "v", "viewOn": "hashed", "pipeline": [] }).await;
        for (key, expected) in [("arr.0", vec![0, 1, 2, 3]), ("arr", vec![0, 1, 2, 3, 4]), ("q", vec![5])] {
            let reply = c.ok(doc! { "distinct": "v", "key": key }).await;
            let values: Vec<i32> = reply
                .get("values")
                .and_then(Bson::as_array)
                .unwrap()
                .iter()
                .map(|v| v.as_i64().unwrap() as i32)
                .collect();
            assert_eq!(values, expected, "{key}");
        }
        c.ok(doc! { "insert": "target", "documents": [{ "_id": 1, "q": 5, "k": -1 }, { "_id": 2, "q": 5, "k": -2 }] }).await;
        let merge = |on: &str| {
            let mut into = doc! { "into": "target", "whenMatched": "keepExisting" };
            into.push("on", on);
            let stages = vec![doc! { "$project": { "_id": 0 } }.into(), doc! { "$merge": into }.into()];
            let mut all = with(doc! { "aggregate": "hashed" }, "pipeline", stages);
            all.push("cursor", doc! {});
            all
        };
        assert_eq!(c.err(merge("q")).await.0, 51183);
        c.ok(doc! { "createIndexes": "target", "indexes": [{ "key": { "k": 1 }, "name": "k", "unique": true }] }).await;
        assert_eq!(c.err(merge("q")).await.0, 51183);
        c.ok(merge("k")).await;
        assert_eq!(c.all(doc! { "find": "target", "filter": { "k": { "$gte": 0 } } }).await.len(), 4);
    });
}

#[test]
fn constants_of_an_update_are_known_wherever_it_is_carried_out() {
    run(async {
        let (_cluster, mut c) = cluster().await;
        c.ok(doc! { "insert": "ranged", "documents": [{ "_id": 1, "k": 1, "q": 1 }, { "_id": 2, "k": 900, "q": 2 }] }).await;
        let update = |filter: Document, upsert: bool| {
            let mut one = doc! { "q": filter, "c": { "c": 5 } };
            one.push("u", vec![doc! { "$set": { "v": "$$c" } }.into()]);
            one.push("upsert", upsert);
            with(doc! { "update": "ranged" }, "updates", vec![one.into()])
        };
        c.ok(update(doc! { "_id": 700 }, true)).await;
        c.ok(update(doc! { "q": { "$gt": 0 } }, false)).await;
        assert_eq!(c.all(doc! { "find": "ranged", "filter": { "v": 5 } }).await.len(), 2);
    });
}

#[test]
fn collections_of_the_system_are_not_sharded() {
    run(async {
        let (_cluster, mut c) = cluster().await;
        c.ok(doc! { "create": "ts", "timeseries": { "timeField": "t" } }).await;
        for (name, code) in [("test.system.buckets.ts", 5_731_501), ("test.system.views", 20)] {
            let wrong = c.err(doc! { "shardCollection": name, "key": { "_id": 1 }, "$db": "admin" }).await;
            assert_eq!(wrong.0, code, "{name}");
        }
        c.ok(doc! { "find": "ts" }).await;
    });
}

/// What a sharded collection is found by stays.
#[test]
fn the_index_of_the_shard_key_is_neither_dropped_nor_hidden() {
    run(async {
        let (cluster, mut c) = cluster().await;
        fill(&mut c, "ranged", 20).await;
        let index = |key: Document, name: &str| doc! { "createIndexes": "ranged", "indexes": [{ "key": key, "name": name }] };
        c.ok(index(doc! { "n": 1 }, "n_1")).await;
        for which in [Bson::from("k_1"), doc! { "k": 1 }.into(), Bson::from(vec![Bson::from("k_1")])] {
            let mut drop = doc! { "dropIndexes": "ranged" };
            drop.push("index", which.clone());
            assert_eq!(c.err(drop).await.0, 370, "{which:?}");
        }
        let hide = || doc! { "collMod": "ranged", "index": { "name": "k_1", "hidden": true } };
        assert_eq!(c.err(hide()).await.0, 370);
        c.ok(doc! { "dropIndexes": "ranged", "index": "*" }).await;
        let names = |rows: Vec<Document>| {
            rows.iter().map(|d| d.get("name").and_then(Bson::as_str).unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(c.all(doc! { "listIndexes": "ranged" }).await), ["_id_", "k_1"]);
        // Another one takes its place.
        c.ok(index(doc! { "k": 1, "n": 1 }, "both")).await;
        c.ok(hide()).await;
        c.ok(doc! { "dropIndexes": "ranged", "index": "k_1" }).await;
        assert_eq!(c.err(doc! { "dropIndexes": "ranged", "index": "both" }).await.0, 370);
        c.ok(doc! { "dropIndexes": "hashed", "index": "*" }).await;
        c.ok(doc! { "split": "test.ranged", "middle": { "k": 100 }, "$db": "admin" }).await;
        let stats = c.ok(doc! { "collStats": "ranged" }).await;
        assert_eq!(stats.get("nchunks"), Some(&Bson::Int32(3)));
        // What a set has for itself asks nobody who owns it.
        let mut direct = cluster.shard(0).await;
        for db in ["admin", "config", "local", "elsewhere"] {
            let index = doc! { "key": { "n": 1 }, "name": "n_1" };
            direct.ok(doc! { "createIndexes": "own", "indexes": [index], "$db": db }).await;
            direct.ok(doc! { "dropIndexes": "own", "index": "*", "$db": db }).await;
        }
        let sizes = stats.get("indexSizes").and_then(Bson::as_doc).unwrap();
        assert!(["_id_", "both"].iter().all(|name| sizes.get(name).is_some()), "{sizes:?}");
    });
}

/// Neither a document nor a list of values is larger than a reply may be.
#[test]
fn what_a_router_puts_together_is_bounded() {
    run(async {
        let (_cluster, mut c) = cluster().await;
        let big = "x".repeat(9 << 20);
        for (i, k) in [(0, 1), (1, 900), (2, 2)] {
            let mut d = doc! { "_id": i, "k": k, "t": 1 };
            d.push("s", format!("{i}{big}"));
            c.ok(with(doc! { "insert": "ranged" }, "documents", vec![d.into()])).await;
        }
        assert_eq!(c.err(doc! { "distinct": "ranged", "key": "s" }).await.0, 17217);
        let group = doc! { "$group": { "_id": Bson::Null, "all": { "$push": "$s" } } };
        let mut all = with(doc! { "aggregate": "ranged" }, "pipeline", vec![group.into()]);
        all.push("cursor", doc! {});
        assert_eq!(c.err(all).await.0, 10334);
    });
}

/// Its primary shard tells of a drop; what other shards drop of it is a part.
#[test]
fn the_drop_of_a_sharded_collection_is_one_event() {
    run(async {
        let (_cluster, mut c) = cluster().await;
        fill(&mut c, "hashed", 20).await;
        let stages = vec![doc! { "$changeStream": {} }.into()];
        let begin = with(doc! { "aggregate": 1, "cursor": {} }, "pipeline", stages);
        let id = c
            .ok(begin)
            .await
            .get("cursor")
            .and_then(Bson::as_doc)
            .and_then(|d| d.get("id"))
            .cloned()
            .unwrap();
        c.ok(doc! { "drop": "hashed" }).await;
        c.ok(doc! { "insert": "ranged", "documents": [{ "_id": 1, "k": 900 }] }).await;
        let told = events(&mut c, "$cmd.aggregate", &id, 2).await;
        let kinds: Vec<_> =
            told.iter().filter_map(|e| e.get("operationType").and_then(Bson::as_str)).collect();
        assert_eq!(kinds, ["drop", "insert"]);
    });
}

#[test]
fn what_does_not_go_with_a_transaction_or_a_stream_is_refused() {
    run(async {
        let (_cluster, mut c) = cluster().await;
        fill(&mut c, "hashed", 3).await;
        let aggregate =
            |stages: Vec<Bson>| with(doc! { "aggregate": "hashed", "cursor": {} }, "pipeline", stages);
        let streams = aggregate(vec![doc! { "$changeStream": {} }.into(), doc! { "$out": "x" }.into()]);
        assert_eq!(c.err(streams).await.0, 20);
        for (n, stage) in [(1i64, doc! { "$merge": "o" }), (2, doc! { "$out": "o" })] {
            let mut all = aggregate(vec![stage.into()]);
            let id = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] });
            all.push("lsid", doc! { "id": id });
            all.push("txnNumber", n);
            all.push("startTransaction", true);
            all.push("autocommit", false);
            assert_eq!(c.err(all).await.0, 263);
        }
        c.ok(doc! { "create": "v", "viewOn": "hashed", "pipeline": [] }).await;
        for read in [doc! { "find": "v" }, doc! { "count": "v" }, doc! { "distinct": "v", "key": "n" }] {
            let told = c.ok(doc! { "explain": read.clone(), "verbosity": "queryPlanner" }).await;
            assert!(told.get("shards").is_some() || told.get("stages").is_some(), "{read:?}: {told:?}");
        }
    });
}

/// The client's own limit, not a host that does not answer.
#[test]
fn a_time_limit_that_runs_out_is_told_as_one() {
    run(async {
        let (cluster, mut c) = cluster().await;
        c.ok(doc! { "insert": "ranged", "documents": [{ "_id": 1, "k": 1 }] }).await;
        let update = || {
            let one = doc! { "q": { "_id": 1, "k": 1 }, "u": { "$set": { "v": 1 } } };
            with(doc! { "update": "ranged" }, "updates", vec![one.into()])
        };
        let mut held = update();
        let id = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![9; 16] });
        held.push("lsid", doc! { "id": id });
        held.push("txnNumber", 1i64);
        held.push("startTransaction", true);
        held.push("autocommit", false);
        c.ok(held).await;
        let mut other = cluster.router(0).await;
        for _ in 0..8 {
            let mut waits = update();
            waits.push("maxTimeMS", 60);
            let reply = other.run(waits).await;
            let of_write = reply
                .get("writeErrors")
                .and_then(Bson::as_array)
                .and_then(|e| e[0].as_doc()?.get("code").cloned());
            assert_eq!(reply.get("code").cloned().or(of_write), Some(Bson::Int32(50)), "{reply:?}");
        }
    });
}

#[test]
fn what_a_filter_of_databases_may_not_have_is_refused_as_by_a_server() {
    run(async {
        let cluster = Cluster::of(1, 1).await;
        let (mut router, mut shard) = (cluster.router(0).await, cluster.shard(0).await);
        for filter in [
            doc! { "$where": "true" },
            doc! { "$text": { "$search": "x" } },
            doc! { "name": { "$near": [0, 0] } },
            doc! { "$expr": { "$eq": ["$name", "admin"] } },
        ] {
            let list = || doc! { "listDatabases": 1, "filter": filter.clone(), "$db": "admin" };
            let (there, here) = (shard.run(list()).await, router.run(list()).await);
            let said = |reply: &Document| (reply.get("code").cloned(), reply.get("errmsg").cloned());
            assert_eq!(said(&here), said(&there), "{filter:?}");
        }
        cluster.shut_down().await;
    });
}

#[test]
fn a_range_that_begins_below_all_keys_concerns_the_first_chunk_and_the_others() {
    run(async {
        let (cluster, mut c) = cluster().await;
        for (zone, min, max) in
            [("low", Bson::MinKey, Bson::Int32(5)), ("high", Bson::Int32(5), Bson::MaxKey)]
        {
            let bound = |k: Bson, j: Bson| doc! { "k": k, "j": j };
            let last = if max == Bson::MaxKey { Bson::MaxKey } else { Bson::MinKey };
            let (min, max) = (bound(min, Bson::MinKey), bound(max, last));
            let command = doc! { "updateZoneKeyRange": "test.compound", "min": min, "max": max, "zone": zone, "$db": "admin" };
            c.ok(command).await;
        }
        cluster.shard_collection("test.compound", doc! { "k": 1, "j": 1 }).await;
        let docs = (0..10).map(|i| doc! { "_id": i, "k": i, "j": i }.into()).collect();
        c.ok(with(doc! { "insert": "compound" }, "documents", docs)).await;
        let nin = doc! { "$nin": vec![Bson::MaxKey] };
        for condition in [
            doc! { "$lt": Bson::MaxKey },
            doc! { "$ne": Bson::MaxKey },
            doc! { "$gte": Bson::MinKey, "$lt": Bson::MaxKey },
            doc! { "$not": doc! { "$gte": Bson::MaxKey } },
            doc! { "$gt": Bson::MinKey },
            doc! { "$ne": Bson::MinKey },
            nin,
        ] {
            let filter = doc! { "k": condition };
            let n = c.ok(doc! { "count": "compound", "query": filter.clone() }).await;
            assert_eq!(n.get("n").and_then(Bson::as_i64), Some(10), "{filter:?}");
            let one = doc! { "q": filter.clone(), "u": { "$inc": { "n": 1 } }, "multi": true };
            let reply = c.ok(with(doc! { "update": "compound" }, "updates", vec![one.into()])).await;
            assert_eq!(reply.get("nModified").and_then(Bson::as_i64), Some(10), "{filter:?}");
        }
        cluster.shut_down().await;
    });
}

#[test]
fn a_time_that_is_to_be_filled_in_is_there_before_it_says_where_a_document_goes() {
    run(async {
        let (cluster, mut c) = cluster().await;
        let time = |seconds| Bson::Timestamp(pando_base::Timestamp::new(seconds, 0));
        let zones = [("low", Bson::MinKey, time(1000)), ("high", time(1000), Bson::MaxKey)];
        for (zone, min, max) in zones {
            let (min, max) = (doc! { "k": min }, doc! { "k": max });
            c.ok(doc! { "updateZoneKeyRange": "test.times", "min": min, "max": max, "zone": zone, "$db": "admin" }).await;
        }
        cluster.shard_collection("test.times", doc! { "k": 1 }).await;
        cluster.shard_collection("test.hashes", doc! { "k": "hashed" }).await;
        for coll in ["times", "hashes"] {
            let docs = (0..20).map(|i| doc! { "_id": i, "k": time(0), "x": time(0) }.into()).collect();
            c.ok(with(doc! { "insert": coll }, "documents", docs)).await;
            let one = doc! { "insert": 0, "document": doc! { "_id": 20, "k": time(0), "x": time(0) } };
            let ns = doc! { "ns": format!("test.{coll}") };
            let mut bulk = doc! { "bulkWrite": 1, "$db": "admin" };
            bulk.push("ops", vec![Bson::from(one)]);
            bulk.push("nsInfo", vec![Bson::from(ns)]);
            c.ok(bulk).await;
            let mut upsert = doc! { "q": doc! { "_id": 21 }, "upsert": true };
            upsert.push("u", doc! { "$set": doc! { "k": time(0), "x": time(0) } });
            c.ok(with(doc! { "update": coll }, "updates", vec![upsert.into()])).await;
            let made = doc! { "$set": doc! { "_id": doc! { "$add": vec![Bson::from("$_id"), 22.into()] }, "k": time(0), "x": time(0) } };
            let into = doc! { "$merge": doc! { "into": coll, "whenMatched": "fail" } };
            let pipeline: Vec<Bson> = vec![doc! { "$sort": { "_id": 1 } }.into(), made.into(), into.into()];
            c.ok(doc! { "aggregate": coll, "pipeline": pipeline, "cursor": doc! {} }).await;
            let all = c.all(doc! { "find": coll, "sort": { "k": 1 } }).await;
            let ids: Vec<i64> = all.iter().filter_map(|d| d.get("_id").and_then(Bson::as_i64)).collect();
            assert_eq!(ids, (0..44).collect::<Vec<i64>>(), "{coll}");
            let is_now = |v: Option<&Bson>| matches!(v, Some(Bson::Timestamp(t)) if t.secs() > 1_000_000);
            assert!(all.iter().all(|d| is_now(d.get("k")) && is_now(d.get("x"))), "{coll}: {all:?}");
        }
        cluster.shut_down().await;
    });
}

#[test]
fn a_name_that_leaves_no_room_for_what_shards_keep_of_it_is_not_sharded() {
    run(async {
        let (cluster, mut c) = cluster().await;
        for (length, may) in [(230, true), (231, false), (250, false)] {
            let coll = "n".repeat(length);
            fill(&mut c, &coll, 5).await;
            let shard =
                doc! { "shardCollection": format!("test.{coll}"), "key": { "_id": 1 }, "$db": "admin" };
            let reply = c.run(shard).await;
            let code = reply.get("code").and_then(Bson::as_i64);
            assert_eq!(code, if may { None } else { Some(73) }, "{length}: {reply:?}");
            assert_eq!(c.all(doc! { "find": coll.clone() }).await.len(), 5);
            c.ok(doc! { "drop": coll }).await;
        }
        cluster.shut_down().await;
    });
}

#[test]
fn what_a_shard_keeps_of_itself_is_nobodys_to_drop() {
    run(async {
        let (cluster, _) = cluster().await;
        let mut shard = cluster.shard(0).await;
        for db in ["admin", "config", "local"] {
            for command in ["_shardsvrDropDatabase", "_shardsvrDropDatabaseParticipant"] {
                let mut drop = Document::new();
                drop.push(command, 1);
                drop.push("writeConcern", doc! { "w": "majority" });
                drop.push("$db", db);
                assert_eq!(shard.err(drop).await.0, 20, "{command} of {db}");
            }
        }
        for command in
            ["_shardsvrDropCollection", "_shardsvrDropCollectionParticipant", "_shardsvrCollModParticipant"]
        {
            for (db, coll) in [("config", "shards"), ("admin", "system.version"), ("local", "oplog.rs")] {
                let mut drop = Document::new();
                drop.push(command, coll);
                drop.push("writeConcern", doc! { "w": "majority" });
                drop.push("$db", db);
                assert_eq!(shard.err(drop).await.0, 20, "{command} of {db}.{coll}");
            }
        }
        cluster.shut_down().await;
    });
}

#[test]
fn results_become_a_collection_of_another_database_wherever_that_is() {
    run(async {
        let cluster = Cluster::of(2, 1).await;
        let mut c = cluster.router(0).await;
        for (db, shard) in [("test", "s0"), ("near", "s0"), ("far", "s1")] {
            c.ok(doc! { "enableSharding": db, "primaryShard": shard, "$db": "admin" }).await;
        }
        let docs: Vec<Bson> = (0..5).map(|i| doc! { "_id": i }.into()).collect();
        c.ok(doc! { "insert": "from", "documents": docs }).await;
        cluster.shard_collection("far.sharded", doc! { "_id": 1 }).await;
        let out = |db: &str, coll: &str| {
            let stages =
                vec![doc! { "$match": { "_id": { "$lt": 3 } } }, doc! { "$out": { "db": db, "coll": coll } }];
            let stages: Vec<Bson> = stages.into_iter().map(Bson::from).collect();
            doc! { "aggregate": "from", "pipeline": stages, "cursor": {} }
        };
        for db in ["test", "near", "far", "made"] {
            for _ in 0..2 {
                c.ok(out(db, "to")).await;
                assert_eq!(c.all(doc! { "find": "to", "$db": db }).await.len(), 3, "{db}");
            }
        }
        for (db, coll, code) in [("far", "sharded", 28769), ("admin", "x", 31321), ("far", "system.x", 17385)]
        {
            let (got, text) = c.err(out(db, coll)).await;
            assert_eq!(got, code, "{db}.{coll}: {text}");
        }
        cluster.shut_down().await;
    });
}

/// What `bulkWrite` told, and how many writes the shards were sent for it.
async fn bulk(
    cluster: &Cluster,
    c: &mut Client,
    ops: &[Bson],
    ordered: bool,
    errors_only: bool,
) -> (Document, i64) {
    let sent = async || {
        let mut all = 0;
        for n in 0..2 {
            let status = cluster.shard(n).await.ok(doc! { "serverStatus": 1, "$db": "admin" }).await;
            for name in ["insert", "update", "delete", "find", "findAndModify"] {
                let total = ["metrics", "commands", name, "total"]
                    .iter()
                    .try_fold(Bson::from(status.clone()), |at, name| at.as_doc()?.get(name).cloned());
                all += total.and_then(|n| n.as_i64()).unwrap();
            }
        }
        all
    };
    let before = sent().await;
    let mut command = doc! { "bulkWrite": 1, "ordered": ordered, "errorsOnly": errors_only, "$db": "admin" };
    command.push("ops", ops.to_vec());
    command.push("nsInfo", vec![Bson::from(doc! { "ns": "test.c" }), doc! { "ns": "test.view" }.into()]);
    let reply = c.ok(command).await;
    (reply, sent().await - before)
}

#[test]
fn operations_of_a_bulk_write_that_are_alike_go_together() {
    run(async {
        let (cluster, mut c) = cluster().await;
        cluster.shard_collection("test.c", doc! { "k": "hashed" }).await;
        c.ok(doc! { "create": "view", "viewOn": "c", "pipeline": [] }).await;
        let filter = |k: i32| doc! { "k": k };
        let one = |kind: &str, filter: Document, more: Document| {
            let mut op = Document::new();
            op.push(kind, 0);
            op.push("filter", filter);
            more.iter().for_each(|(name, v)| op.push(name, v.clone()));
            Bson::from(op)
        };
        let insert = |k: i32| Bson::from(doc! { "insert": 0, "document": doc! { "_id": k, "k": k } });
        let set = |v: i32| doc! { "updateMods": doc! { "$set": doc! { "v": v } } };
        let upsert = |v: i32| doc! { "updateMods": doc! { "$set": doc! { "v": v } }, "upsert": true };
        let mut ops: Vec<Bson> = (0..100).map(insert).collect();
        ops.extend((0..100).map(|k| one("update", filter(k), set(k % 2))));
        ops.extend((90..110).map(|k| one("update", filter(k), upsert(7))));
        ops.extend((0..50).map(|k| one("delete", filter(k), doc! { "multi": false })));
        let of = |reply: &Document, name: &str| reply.get(name).and_then(Bson::as_i64).unwrap();
        let names = ["nErrors", "nInserted", "nMatched", "nModified", "nUpserted", "nDeleted"];
        for ordered in [true, false] {
            for errors_only in [true, false] {
                c.ok(doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await;
                let (reply, sent) = bulk(&cluster, &mut c, &ops, ordered, errors_only).await;
                assert_eq!(names.map(|n| of(&reply, n)), [0, 100, 110, 110, 10, 50], "{reply:?}");
                assert_eq!(c.all(doc! { "find": "c" }).await.len(), 60);
                // In order, those that follow each other on one shard go together.
                assert!(ordered || (sent < 40) == errors_only, "{sent} commands");
            }
        }
        // One that fails among others: those behind it are done where nobody asked for an order.
        let double = one("update", filter(95), doc! { "updateMods": { "$inc": { "k": "x" } } });
        let four = [
            one("update", filter(60), set(1)),
            double,
            one("update", filter(61), set(9)),
            one("delete", filter(61), doc! {}),
        ];
        let (reply, _) = bulk(&cluster, &mut c, &four, true, true).await;
        assert_eq!(names.map(|n| of(&reply, n)), [1, 0, 1, 1, 0, 0], "{reply:?}");
        let (reply, _) = bulk(&cluster, &mut c, &four, false, true).await;
        assert_eq!(names.map(|n| of(&reply, n)), [1, 0, 2, 1, 0, 1], "{reply:?}");
        // What fails as a whole fails for each of them.
        let on_view = |k: i32| Bson::from(doc! { "insert": 1, "document": doc! { "_id": k } });
        for (ordered, errors) in [(true, 1), (false, 3)] {
            let three: Vec<Bson> = (0..3).map(on_view).collect();
            let (reply, _) = bulk(&cluster, &mut c, &three, ordered, true).await;
            assert_eq!(names.map(|n| of(&reply, n)), [errors, 0, 0, 0, 0, 0], "{reply:?}");
        }
        cluster.shut_down().await;
    });
}
