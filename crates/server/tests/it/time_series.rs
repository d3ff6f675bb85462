//! Time series through the whole server: where measurements go, what errors stop, what a restart finds.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Running, World, run};

const HOUR: i64 = 3_600_000;

fn at(ms: i64) -> Bson {
    Bson::DateTime(1_700_000_000_000 - 1_700_000_000_000 % HOUR + ms)
}

async fn started() -> (World, Running, Client) {
    let world = World::new();
    let server = world.start_set().await;
    let mut c = server.connect().await;
    c.ok(doc! { "create": "ts", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    (world, server, c)
}

fn insert(docs: Vec<Document>, ordered: bool) -> Document {
    let docs = docs.into_iter().map(Bson::Document).collect::<Vec<_>>();
    let mut command = doc! { "insert": "ts", "ordered": ordered };
    command.push("documents", docs);
    command
}

async fn buckets(c: &mut Client) -> Vec<Document> {
    c.all(doc! { "find": "system.buckets.ts", "sort": { "_id": 1 } }).await
}

fn number(d: &Document, path: &[&str]) -> i64 {
    let (last, before) = path.split_last().unwrap();
    let mut d = d.clone();
    for name in before {
        d = d.get(name).and_then(Bson::as_doc).unwrap().clone();
    }
    d.get(last).and_then(Bson::as_i64).unwrap()
}

/// What failed: `(index, code)`.
fn failed(reply: &Document) -> Vec<(i64, i64)> {
    let errors = reply.get("writeErrors").and_then(Bson::as_array).unwrap_or_default();
    errors
        .iter()
        .map(|e| e.as_doc().unwrap())
        .map(|e| (number(e, &["index"]), number(e, &["code"])))
        .collect()
}

#[test]
fn a_batch_writes_each_bucket_once() {
    run(async {
        let (_world, server, mut c) = started().await;
        let docs = |from: i64| (from..from + 300).map(|i| doc! { "t": at(i), "m": i % 3, "x": i }).collect();
        c.ok(insert(docs(0), true)).await;
        c.ok(insert(docs(300), false)).await;
        let stats = c.ok(doc! { "collStats": "ts" }).await;
        let of = |name: &str| number(&stats, &["timeseries", name]);
        assert_eq!((of("bucketCount"), of("numBucketInserts"), of("numBucketUpdates")), (3, 3, 3));
        assert_eq!((of("numMeasurementsCommitted"), of("avgNumMeasurementsPerCommit")), (600, 100));
        let entries = c.all(doc! {
            "find": "oplog.rs", "$db": "local", "filter": { "ns": "test.system.buckets.ts", "op": { "$in": ["i", "u"] } },
        }).await;
        assert_eq!(entries.len(), 6);
        assert_eq!(c.all(doc! { "find": "ts" }).await.len(), 600);
        server.shut_down().await;
    });
}

#[test]
fn an_ordered_insert_stops_at_the_measurement_whose_bucket_fails() {
    run(async {
        let (_world, server, mut c) = started().await;
        c.ok(doc! { "createIndexes": "ts", "indexes": [{ "key": { "m.loc": "2dsphere" }, "name": "loc" }] })
            .await;
        let place = |x: i32| doc! { "type": "Point", "coordinates": [x, 0] };
        let docs = || -> Vec<Document> {
            [1, 2, 999, 3, 2].iter().map(|x| doc! { "t": at(0), "m": { "loc": place(*x) } }).collect()
        };
        let reply = c.ok(insert(docs(), true)).await;
        assert_eq!((number(&reply, &["n"]), failed(&reply)), (2, vec![(2, 16755)]));
        assert_eq!(c.all(doc! { "find": "ts" }).await.len(), 2);
        let reply = c.ok(insert(docs(), false)).await;
        assert_eq!((number(&reply, &["n"]), failed(&reply)), (4, vec![(2, 16755)]));
        assert_eq!((c.all(doc! { "find": "ts" }).await.len(), buckets(&mut c).await.len()), (6, 3));
        // What is no measurement stops it as well.
        let reply = c.ok(insert(vec![doc! { "t": at(0) }, doc! { "x": 1 }, doc! { "t": at(1) }], true)).await;
        assert_eq!((number(&reply, &["n"]), failed(&reply)), (1, vec![(1, 2)]));
        server.shut_down().await;
    });
}

#[test]
fn buckets_are_taken_up_again_after_a_restart_and_by_measurements_that_come_late() {
    run(async {
        let (world, server, mut c) = started().await;
        let one = |ms: i64, m: &str| insert(vec![doc! { "t": at(ms), "m": m }], true);
        for (ms, m) in [(0, "a"), (0, "b"), (3 * HOUR, "a")] {
            c.ok(one(ms, m)).await;
        }
        server.shut_down().await;
        let server = world.start_set().await;
        let mut c = server.connect().await;
        for (ms, m) in [(1, "b"), (1, "a"), (3 * HOUR + 1, "a"), (2, "a"), (2, "b")] {
            c.ok(one(ms, m)).await;
        }
        assert_eq!((buckets(&mut c).await.len(), c.all(doc! { "find": "ts" }).await.len()), (3, 8));
        // Nothing goes into one that is closed.
        let close = doc! { "q": {}, "u": { "$set": { "control.closed": true } }, "multi": true };
        c.ok(doc! { "update": "system.buckets.ts", "updates": [close] }).await;
        c.ok(one(3, "b")).await;
        assert_eq!(buckets(&mut c).await.len(), 4);
        server.shut_down().await;
    });
}

#[test]
fn a_series_without_sources_goes_on_after_a_restart() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "ts", "timeseries": { "timeField": "t" } }).await;
        c.ok(insert(vec![doc! { "t": at(0) }, doc! { "t": at(2 * HOUR) }], true)).await;
        server.shut_down().await;
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(insert(vec![doc! { "t": at(5) }, doc! { "t": at(2 * HOUR + 5) }, doc! { "t": at(6) }], true))
            .await;
        assert_eq!(buckets(&mut c).await.len(), 2);
        server.shut_down().await;
    });
}

fn bulk(ops: Vec<Document>, info: Document) -> Document {
    let mut command = doc! { "bulkWrite": 1 };
    command.push("ops", ops.into_iter().map(Bson::Document).collect::<Vec<_>>());
    command.push("nsInfo", vec![Bson::Document(info)]);
    command.push("$db", "admin");
    command
}

#[test]
fn bulk_write_speaks_of_measurements_and_sources() {
    run(async {
        let (_world, server, mut c) = started().await;
        let ops = || {
            vec![
                doc! { "insert": 0, "document": { "t": at(0), "m": 1 } },
                doc! { "insert": 0, "document": { "t": at(1), "m": 1 } },
                doc! { "insert": 0, "document": { "t": at(1), "m": 2 } },
                doc! { "update": 0, "filter": { "m": 1 }, "updateMods": { "$set": { "m": 3 } }, "multi": true },
                doc! { "delete": 0, "filter": { "m": 2 }, "multi": true },
            ]
        };
        let reply = c.ok(bulk(ops(), doc! { "ns": "test.ts" })).await;
        let sums =
            ["nErrors", "nInserted", "nMatched", "nModified", "nDeleted"].map(|n| number(&reply, &[n]));
        assert_eq!(sums, [0, 3, 2, 2, 1]);
        let reply =
            c.ok(bulk(ops(), doc! { "ns": "test.system.buckets.ts", "isTimeseriesNamespace": true })).await;
        assert_eq!((number(&reply, &["nInserted"]), number(&reply, &["nDeleted"])), (3, 1));
        let wrong = bulk(ops(), doc! { "ns": "test.ts", "isTimeseriesNamespace": true });
        assert_eq!(c.err(wrong).await.0, 5_916_400);
        server.shut_down().await;
    });
}

#[test]
fn a_wrong_uuid_is_told_by_every_write() {
    run(async {
        let (_world, server, mut c) = started().await;
        let wrong = || Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] });
        for (mut command, coll) in [
            (insert(vec![doc! { "t": at(0) }], true), "system.buckets.ts"),
            (doc! { "insert": "c", "documents": [{}] }, "c"),
            (
                doc! { "update": "ts", "updates": [{ "q": {}, "u": { "$set": { "m": 1 } }, "multi": true }] },
                "system.buckets.ts",
            ),
            (doc! { "delete": "ts", "deletes": [{ "q": {}, "limit": 0 }] }, "system.buckets.ts"),
        ] {
            command.push("collectionUUID", wrong());
            let reply = c.ok(command).await;
            assert_eq!(failed(&reply), [(0, 361)]);
            let error =
                reply.get("writeErrors").and_then(Bson::as_array).unwrap()[0].as_doc().unwrap().clone();
            assert_eq!(error.get("expectedCollection").and_then(Bson::as_str), Some(coll));
        }
        for mut command in [
            doc! { "collMod": "ts" },
            doc! { "count": "ts" },
            doc! { "find": "ts" },
            doc! { "aggregate": "ts", "pipeline": [], "cursor": {} },
            doc! { "createIndexes": "ts", "indexes": [{ "key": { "m": 1 }, "name": "m" }] },
            doc! { "dropIndexes": "ts", "index": "*" },
        ] {
            command.push("collectionUUID", wrong());
            assert_eq!(c.err(command).await.0, 361);
        }
        let info = doc! { "ns": "test.ts", "collectionUUID": wrong() };
        let reply = c.ok(bulk(vec![doc! { "insert": 0, "document": { "t": at(0) } }], info)).await;
        assert_eq!((number(&reply, &["nErrors"]), number(&reply, &["nInserted"])), (1, 0));
        assert!(buckets(&mut c).await.is_empty());
        server.shut_down().await;
    });
}

#[test]
fn coll_mod_widens_buckets_and_the_view_follows() {
    run(async {
        let (world, server, mut c) = started().await;
        c.ok(insert(vec![doc! { "t": at(0), "m": 1 }], true)).await;
        let granularity = |g: &str| doc! { "collMod": "ts", "timeseries": { "granularity": g } };
        c.ok(granularity("minutes")).await;
        assert_eq!(c.err(granularity("seconds")).await.0, 72);
        assert_eq!(c.err(doc! { "collMod": "ts", "validator": {} }).await.0, 72);
        assert_eq!(c.err(doc! { "collMod": "ts", "timeseries": { "a": 1 } }).await.0, 40415);
        c.ok(doc! { "collMod": "ts", "expireAfterSeconds": 100_000_000 }).await;
        c.ok(doc! { "collMod": "ts", "index": { "keyPattern": { "m": 1, "t": 1 }, "hidden": true } }).await;
        let shown = doc! { "listCollections": 1, "filter": { "name": "ts" } };
        let options = c.all(shown.clone()).await.remove(0).get("options").cloned();
        let series = doc! {
            "timeField": "t", "metaField": "m", "granularity": "minutes", "bucketMaxSpanSeconds": 86400,
        };
        let wanted = doc! { "expireAfterSeconds": 100_000_000i64, "timeseries": series };
        assert_eq!(options, Some(Bson::Document(wanted.clone())));
        server.shut_down().await;
        let server = world.start_set().await;
        let mut c = server.connect().await;
        assert_eq!(c.all(shown).await.remove(0).get("options"), Some(&Bson::Document(wanted)));
        let views = c.all(doc! { "find": "system.views" }).await;
        assert!(format!("{views:?}").contains("86400"), "{views:?}");
        // The old bucket takes what is within the new span.
        c.ok(insert(vec![doc! { "t": at(5 * HOUR), "m": 1 }], true)).await;
        assert_eq!(c.all(doc! { "find": "ts" }).await.len(), 2);
        server.shut_down().await;
    });
}

#[test]
fn conditions_on_source_and_time_read_few_buckets() {
    run(async {
        let (_world, server, mut c) = started().await;
        let docs = (0..600).map(|i| doc! { "t": at(i % 30 * HOUR), "m": i % 20, "x": i }).collect();
        c.ok(insert(docs, true)).await;
        let all = buckets(&mut c).await.len() as i64;
        let window = || doc! { "$gte": at(10 * HOUR), "$lt": at(12 * HOUR) };
        for (filter, docs, keys, stage) in [
            (doc! { "m": 0, "t": window() }, 2, 2, "IXSCAN"),
            (doc! { "m": 0 }, 3, 3, "IXSCAN"),
            (doc! { "t": window() }, all / 5, 0, "CLUSTERED_IXSCAN"),
            (doc! { "x": 5 }, all, 0, "COLLSCAN"),
        ] {
            let found = c.all(doc! { "find": "ts", "filter": filter.clone() }).await.len();
            let find = doc! { "find": "ts", "filter": filter.clone() };
            let told = c.ok(doc! { "explain": find, "verbosity": "executionStats" }).await;
            let stages = told.get("stages").and_then(Bson::as_array).unwrap();
            let cursor = stages[0].as_doc().and_then(|s| s.get("$cursor")?.as_doc()).unwrap();
            let of = |name: &str| number(cursor, &["executionStats", name]);
            assert!(
                of("totalDocsExamined") <= docs && of("totalKeysExamined") <= keys,
                "{filter:?}: {cursor:?}"
            );
            assert!(format!("{cursor:?}").contains(stage), "{filter:?}: {cursor:?}");
            assert!(format!("{:?}", stages[1]).contains("$_internalUnpackBucket") && found > 0);
        }
        server.shut_down().await;
    });
}

/// Ten measurements an hour apart on the equator and a step north of it, from two sources.
async fn with_places(c: &mut Client) {
    let docs = (0..10).map(|i| {
        let mut d =
            doc! { "_id": i, "t": at(i64::from(i) * HOUR), "m": { "p": [f64::from(i % 2) * 10.0, 0.0] } };
        d.push("place", doc! { "type": "Point", "coordinates": [f64::from(i), f64::from(i % 3)] });
        d
    });
    c.ok(insert(docs.collect(), true)).await;
}
fn index(key: Document, name: &str) -> Document {
    doc! { "createIndexes": "ts", "indexes": [{ "key": key, "name": name }] }
}
fn near(options: Document) -> Document {
    let mut spec = doc! { "near": { "type": "Point", "coordinates": [0.0, 0.0] }, "distanceField": "d" };
    options.into_fields().into_iter().for_each(|(name, v)| spec.push(name, v));
    let mut command = doc! { "aggregate": "ts", "cursor": {} };
    command.push("pipeline", vec![Bson::Document(doc! { "$geoNear": spec })]);
    command
}
fn ids_of(docs: &[Document]) -> Vec<i64> {
    docs.iter().map(|d| number(d, &["_id"])).collect()
}

#[test]
fn places_of_measurements_and_sources_are_found_nearest_first() {
    run(async {
        let (_world, server, mut c) = started().await;
        with_places(&mut c).await;
        let by_place = c.all(near(doc! { "key": "place" })).await;
        assert_eq!(ids_of(&by_place), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let metres = by_place[1].get("d").and_then(Bson::as_f64).unwrap();
        assert!((157_000.0..158_000.0).contains(&metres), "{metres}");
        let some = c.all(near(doc! { "key": "place", "minDistance": 100_000, "maxDistance": 400_000 })).await;
        assert_eq!(ids_of(&some), [1, 2, 3]);
        assert_eq!(c.err(near(doc! {})).await.0, 5_892_921);
        assert_eq!(c.err(near(doc! { "key": "place", "query": { "_id": 1 } })).await.0, 1_938_439);
        // A source has its own index on places, and is what is searched.
        assert_eq!(c.err(near(doc! { "key": "m.p" })).await.0, 291);
        c.ok(index(doc! { "m.p": "2dsphere" }, "source")).await;
        let by_source = c.all(near(doc! { "key": "m.p" })).await;
        let distances: Vec<f64> =
            by_source.iter().map(|d| d.get("d").and_then(Bson::as_f64).unwrap()).collect();
        assert!(distances.len() == 10 && distances[4] == 0.0 && distances[5] > 1_000_000.0, "{distances:?}");
        server.shut_down().await;
    });
}

#[test]
fn an_index_on_places_of_measurements_finds_their_buckets() {
    run(async {
        let (_world, server, mut c) = started().await;
        with_places(&mut c).await;
        c.ok(index(doc! { "place": "2dsphere", "t": 1 }, "place")).await;
        let listed = c.all(doc! { "listIndexes": "ts" }).await;
        assert!(
            listed
                .iter()
                .any(|i| i.get("key") == Some(&Bson::Document(doc! { "place": "2dsphere", "t": 1 })))
        );
        let within = || {
            let region = doc! { "$centerSphere": [[2.0, 2.0], 0.03] };
            doc! { "find": "ts", "filter": { "place": { "$geoWithin": region } }, "sort": { "_id": 1 } }
        };
        assert_eq!(ids_of(&c.all(within()).await), [1, 2]);
        let plan = c.ok(doc! { "explain": within(), "verbosity": "executionStats" }).await;
        assert!(format!("{plan:?}").contains("2dsphere_bucket"), "{plan:?}");
        let near_ones = c.all(near(doc! { "key": "place", "maxDistance": 400_000 })).await;
        assert_eq!(ids_of(&near_ones), [0, 1, 2, 3]);
        // What comes later is found too, what is no place is refused.
        let later = doc! { "_id": 10, "t": at(HOUR), "m": { "p": [0.0, 0.0] }, "place": [2.0, 2.0] };
        c.ok(insert(vec![later], true)).await;
        assert_eq!(ids_of(&c.all(within()).await), [1, 2, 10]);
        let bad = doc! { "_id": 11, "t": at(0), "m": 1, "place": "nowhere" };
        assert_eq!(failed(&c.run(insert(vec![bad], true)).await), [(0, 183_934)]);
        server.shut_down().await;
    });
}

fn delete(q: Document, limit: i32) -> Document {
    doc! { "delete": "ts", "deletes": [{ "q": q, "limit": limit }] }
}
async fn left(c: &mut Client) -> Vec<i64> {
    ids_of(&c.all(doc! { "find": "ts", "sort": { "_id": 1 } }).await)
}

#[test]
fn measurements_are_deleted_by_any_condition() {
    run(async {
        let (_world, server, mut c) = started().await;
        let docs = (0..20).map(|i| doc! { "_id": i, "t": at(i64::from(i) * 60_000), "m": i % 2, "v": i % 5 });
        c.ok(insert(docs.collect(), true)).await;
        assert_eq!(buckets(&mut c).await.len(), 2);
        let n = |reply: Document| reply.get("n").and_then(Bson::as_i64).unwrap();
        assert_eq!(n(c.ok(delete(doc! { "v": { "$gte": 3 } }, 0)).await), 8);
        assert_eq!(left(&mut c).await, [0, 1, 2, 5, 6, 7, 10, 11, 12, 15, 16, 17]);
        assert_eq!(n(c.ok(delete(doc! { "v": 1 }, 1)).await), 1);
        assert_eq!(n(c.ok(delete(doc! { "_id": 2, "m": 0 }, 1)).await), 1);
        let times = doc! { "$gte": at(10 * 60_000), "$lt": at(12 * 60_000) };
        assert_eq!(n(c.ok(delete(doc! { "t": times }, 0)).await), 2);
        assert_eq!(n(c.ok(delete(doc! { "v": 77 }, 0)).await), 0);
        let now = left(&mut c).await;
        assert_eq!(now.len(), 8, "{now:?}");
        // What a bucket says of its measurements is true of those that stayed.
        let of_odd = doc! { "aggregate": "ts", "cursor": {}, "pipeline": [
            { "$match": { "m": 1, "t": { "$gte": at(17 * 60_000) } } },
            { "$group": { "_id": Bson::Null, "n": { "$sum": 1 } } },
        ] };
        assert_eq!(number(&c.all(of_odd).await[0], &["n"]), 1);
        // A retried delete of one takes one.
        let lsid = doc! { "id": Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![5; 16] }) };
        let mut once = delete(doc! { "m": 0 }, 1);
        once.push("lsid", lsid);
        once.push("txnNumber", 1_i64);
        for _ in 0..2 {
            assert_eq!(n(c.ok(once.clone()).await), 1);
        }
        assert_eq!(left(&mut c).await.len(), 7);
        // The last measurement takes its bucket along, and the source begins another.
        assert_eq!(n(c.ok(delete(doc! { "_id": { "$gte": 0 } }, 0)).await), 7);
        assert!(buckets(&mut c).await.is_empty());
        c.ok(insert(vec![doc! { "_id": 1, "t": at(0), "m": 0 }], true)).await;
        assert_eq!(left(&mut c).await, [1]);
        server.shut_down().await;
    });
}

/// Which buckets there are changes outside of transactions, so measurements are neither changed nor deleted in one.
#[test]
fn transactions_change_no_measurements() {
    run(async {
        let (_world, server, mut c) = started().await;
        c.ok(insert(vec![doc! { "t": at(0), "m": 1 }], true)).await;
        let update = doc! { "q": { "m": 1 }, "u": { "$set": { "m": 2 } }, "multi": true };
        let delete = doc! { "q": { "m": 1 }, "limit": 0 };
        let by_measurement = doc! { "q": { "v": 1 }, "limit": 0 };
        let ns = || doc! { "ns": "test.ts" };
        let statements = [
            doc! { "update": "ts", "updates": [update] },
            doc! { "delete": "ts", "deletes": [delete] },
            doc! { "delete": "ts", "deletes": [by_measurement] },
            bulk(vec![doc! { "delete": 0, "filter": { "m": 1 }, "multi": true }], ns()),
            bulk(vec![doc! { "delete": 0, "filter": { "v": 1 } }], ns()),
            bulk(
                vec![
                    doc! { "update": 0, "filter": { "m": 1 }, "updateMods": { "$set": { "m": 2 } }, "multi": true },
                ],
                ns(),
            ),
        ];
        for (i, mut statement) in statements.into_iter().enumerate() {
            let id = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![i as u8; 16] });
            statement.push("lsid", doc! { "id": id.clone() });
            statement.push("txnNumber", 1i64);
            statement.push("autocommit", false);
            statement.push("startTransaction", true);
            let (code, text) = c.err(statement).await;
            assert_eq!(code, 263);
            assert!(
                text.ends_with(
                    "Cannot perform a multi-document transaction on a time-series collection: test.ts"
                ),
                "{text}"
            );
            let commit = doc! { "commitTransaction": 1, "$db": "admin", "lsid": { "id": id }, "txnNumber": 1i64, "autocommit": false };
            assert_eq!(c.err(commit).await.0, 251);
        }
        assert_eq!(c.all(doc! { "find": "ts", "filter": { "m": 1 } }).await.len(), 1);
        server.shut_down().await;
    });
}

#[test]
fn the_indexes_of_a_time_series_are_listed_by_its_name_or_by_that_of_its_buckets() {
    run(async {
        let (_world, server, mut c) = started().await;
        let list =
            |name: &str, by_buckets: bool| doc! { "listIndexes": name, "isTimeseriesNamespace": by_buckets };
        let of_users = c.all(doc! { "listIndexes": "ts" }).await;
        assert_eq!(c.all(list("ts", false)).await, of_users);
        let reply = c.ok(list("system.buckets.ts", true)).await;
        let cursor = reply.get("cursor").and_then(Bson::as_doc).unwrap();
        assert_eq!(cursor.get("ns").and_then(Bson::as_str), Some("test.ts"));
        assert_eq!(cursor.get("firstBatch").and_then(Bson::as_array).map(|a| a.len()), Some(of_users.len()));
        let (code, text) = c.err(list("ts", true)).await;
        assert_eq!((code, &*text), (166, "Namespace test.ts is a timeseries collection"));
        assert_eq!(c.err(list("system.buckets.none", true)).await.0, 26);
        server.shut_down().await;
    });
}

#[test]
fn a_view_of_buckets_that_are_not_there_is_like_any_other() {
    run(async {
        let (_world, server, mut c) = started().await;
        c.ok(doc! { "create": "v", "viewOn": "system.buckets.v" }).await;
        let (code, text) = c.err(doc! { "collMod": "v", "expireAfterSeconds": 3 }).await;
        assert_eq!((code, &*text), (72, "option not supported on a view: expireAfterSeconds"));
        c.ok(doc! { "collMod": "v", "viewOn": "system.buckets.w", "pipeline": [] }).await;
        c.ok(doc! { "drop": "v" }).await;
        assert!(c.all(doc! { "listCollections": 1, "filter": { "name": "v" } }).await.is_empty());
        server.shut_down().await;
    });
}

#[test]
fn where_measurements_have_no_source_no_update_is_right() {
    run(async {
        let (_world, server, mut c) = started().await;
        c.ok(doc! { "create": "plain", "timeseries": { "timeField": "t" } }).await;
        for more in [doc! { "multi": true }, doc! { "multi": false }, doc! { "upsert": true }] {
            let mut one = doc! { "q": {}, "u": { "$set": { "m": 1 } } };
            more.iter().for_each(|(k, v)| one.set(k, v.clone()));
            let reply = c.run(doc! { "update": "plain", "updates": [one] }).await;
            let errors = reply.get("writeErrors").and_then(Bson::as_array).unwrap();
            let text = errors[0].as_doc().unwrap().get("errmsg").and_then(Bson::as_str).unwrap();
            let wanted =
                "Cannot perform an update on a time-series collection that does not have a metaField";
            assert_eq!(text, wanted);
        }
        server.shut_down().await;
    });
}
