//! Cursors that wait, resume, fill up to the limit, or lose their place.

#![allow(clippy::disallowed_methods)]

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, World, pause, run, spawn};
use std::time::{Duration, Instant};

fn batch(reply: &Document) -> (i64, Vec<Document>) {
    let cursor = reply.get("cursor").and_then(Bson::as_doc).expect("a cursor");
    let docs = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
    let Some(Bson::Array(docs)) = docs else { panic!("no batch: {cursor:?}") };
    let docs = docs.iter().filter_map(|d| d.as_doc().cloned()).collect();
    (cursor.get("id").and_then(Bson::as_i64).unwrap_or(0), docs)
}

async fn insert(c: &mut Client, coll: &str, ids: std::ops::Range<i32>) {
    let docs = ids.map(|i| Bson::Document(doc! { "_id": i })).collect();
    c.ok(doc! { "insert": coll, "documents": Bson::Array(docs) }).await;
}

fn get_more(id: i64, coll: &str) -> Document {
    doc! { "getMore": id, "collection": coll }
}

#[test]
fn await_data_on_the_oplog_wakes_at_a_write_and_ends_after_its_time() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        insert(&mut c, "c", 0..1).await;
        let now = c.ok(doc! { "ping": 1 }).await.get("operationTime").cloned().expect("a time");
        let find = doc! { "find": "oplog.rs", "filter": { "ts": { "$gt": now }, "ns": "test.c" }, "tailable": true,
        "awaitData": true, "$db": "local" };
        let (id, docs) = batch(&c.ok(find).await);
        assert!(id != 0 && docs.is_empty());

        let mut waiting = get_more(id, "oplog.rs");
        waiting.push("maxTimeMS", 10_000);
        waiting.push("$db", "local");
        let task = spawn(async move {
            let start = Instant::now();
            let reply = c.ok(waiting).await;
            (reply, start.elapsed(), c)
        });
        pause(200).await;
        let mut other = server.connect().await;
        insert(&mut other, "c", 1..2).await;
        let (reply, took, mut c) = task.await.expect("the getMore ends");
        let (id, docs) = batch(&reply);
        assert_eq!(docs.len(), 1, "{docs:?}");
        assert_eq!(docs[0].get("o").and_then(Bson::as_doc), Some(&doc! { "_id": 1 }));
        assert!(took < Duration::from_secs(5), "woken by the write, not by the clock: {took:?}");

        // Nothing more comes: the wait ends with an empty batch and a live cursor.
        let mut waiting = get_more(id, "oplog.rs");
        waiting.push("maxTimeMS", 300);
        waiting.push("$db", "local");
        let start = Instant::now();
        let (id, docs) = batch(&c.ok(waiting).await);
        assert!(id != 0 && docs.is_empty());
        assert!(start.elapsed() >= Duration::from_millis(250));
        server.shut_down().await;
    });
}

#[test]
fn a_query_on_the_oplogs_ts_starts_at_its_place() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        for at in 0..20 {
            insert(&mut c, "c", at * 100..(at + 1) * 100).await;
        }
        let from = c.ok(doc! { "ping": 1 }).await.get("operationTime").cloned().expect("a time");
        insert(&mut c, "c", 5000..5003).await;
        for op in ["$gte", "$gt"] {
            let mut ts = Document::new();
            ts.push(op, from.clone());
            let find = doc! { "find": "oplog.rs", "filter": { "ts": ts }, "$db": "local" };
            let explain =
                c.ok(doc! { "explain": find.clone(), "verbosity": "executionStats", "$db": "local" }).await;
            let stats = explain.get("executionStats").and_then(Bson::as_doc).expect("statistics");
            let examined = stats.get("totalDocsExamined").and_then(Bson::as_i64).unwrap_or(i64::MAX);
            assert!(examined < 20, "{op} looked at {examined} entries");
            let found = c.all(find).await;
            assert_eq!(
                found.iter().filter(|e| e.get("op").and_then(Bson::as_str) == Some("i")).count() as i64,
                {
                    // `$gte` includes the entry at that time, the last insert before.
                    if op == "$gte" { 4 } else { 3 }
                }
            );
        }
        server.shut_down().await;
    });
}

#[test]
fn a_snapshots_time_is_told_and_read_again() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let insert = |from: i32, to: i32| {
            let docs = (from..to).map(|i| Bson::Document(doc! { "_id": i })).collect();
            doc! { "insert": "c", "documents": Bson::Array(docs), "writeConcern": { "w": "majority" } }
        };
        c.ok(insert(0, 3)).await;
        let snapshot = || doc! { "level": "snapshot" };
        let first = c.ok(doc! { "distinct": "c", "key": "_id", "readConcern": snapshot() }).await;
        let at = first.get("atClusterTime").cloned().expect("the snapshot's time");
        c.ok(insert(3, 6)).await;
        let mut then = snapshot();
        then.push("atClusterTime", at);
        let again = c.ok(doc! { "distinct": "c", "key": "_id", "readConcern": then.clone() }).await;
        assert_eq!(again.get("values"), first.get("values"));
        assert_eq!(c.all(doc! { "find": "c", "readConcern": then.clone() }).await.len(), 3);
        let pipeline =
            doc! { "aggregate": "c", "pipeline": [{ "$count": "n" }], "cursor": {}, "readConcern": then };
        assert_eq!(c.all(pipeline).await, [doc! { "n": 3 }]);
        server.shut_down().await;
    });
}

#[test]
fn a_batch_holds_no_more_than_sixteen_mebibytes() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let big = Bson::Binary(Binary { subtype: 0, bytes: vec![7; 5 << 20] });
        for i in 0..7 {
            c.ok(doc! { "insert": "c", "documents": [{ "_id": i, "b": big.clone() }] }).await;
        }
        let (mut id, docs) = batch(&c.ok(doc! { "find": "c" }).await);
        assert_eq!(docs.len(), 3);
        let mut seen = docs.len();
        while id != 0 {
            let (next, docs) = batch(&c.ok(get_more(id, "c")).await);
            assert!(docs.len() <= 3);
            seen += docs.len();
            id = next;
        }
        assert_eq!(seen, 7);
        // One document of nearly the limit is a batch of its own, whatever the reply needs around it.
        let huge = Bson::Binary(Binary { subtype: 0, bytes: vec![7; (16 << 20) - 40] });
        c.ok(doc! { "insert": "h", "documents": [{ "_id": 1, "b": huge.clone() }] }).await;
        c.ok(doc! { "insert": "h", "documents": [{ "_id": 2, "b": 1 }] }).await;
        assert_eq!(c.all(doc! { "find": "h" }).await.len(), 2);
        server.shut_down().await;
    });
}

#[test]
fn a_scan_of_a_capped_collection_that_was_overrun_says_so() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        for tailable in [true, false] {
            c.run(doc! { "drop": "c" }).await;
            c.ok(doc! { "create": "c", "capped": true, "size": 4096, "max": 5 }).await;
            insert(&mut c, "c", 0..5).await;
            let (id, docs) = batch(&c.ok(doc! { "find": "c", "batchSize": 2, "tailable": tailable }).await);
            assert_eq!(docs.len(), 2);
            insert(&mut c, "c", 10..20).await;
            let (code, text) = c.err(get_more(id, "c")).await;
            assert_eq!(code, 136);
            assert!(text.starts_with("CollectionScan died due to position"), "{text}");
            assert_eq!(c.err(get_more(id, "c")).await.0, 43);
        }
        c.run(doc! { "drop": "c" }).await;
        c.ok(doc! { "create": "c", "capped": true, "size": 4096, "max": 5 }).await;
        insert(&mut c, "c", 0..5).await;
        let (id, _) = batch(&c.ok(doc! { "find": "c", "tailable": true }).await);
        insert(&mut c, "c", 10..20).await;
        let (code, text) = c.err(get_more(id, "c")).await;
        assert_eq!(code, 136);
        assert!(text.contains("failure to restore tailable cursor position"), "{text}");
        server.shut_down().await;
    });
}

#[test]
fn what_cursors_hold_in_memory_is_counted() {
    run(async {
        let world = World::new();
        let server = world.start_standalone().await;
        let mut c = server.connect().await;
        let docs = (0..200).map(|i| Bson::Document(doc! { "_id": i, "pad": "x".repeat(10_000) })).collect();
        c.ok(doc! { "insert": "c", "documents": Bson::Array(docs) }).await;
        let opened = [
            doc! { "find": "c", "sort": { "pad": 1 }, "batchSize": 1 },
            doc! { "aggregate": "c", "pipeline": [{ "$group": { "_id": "$_id", "p": { "$first": "$pad" } } }],
            "cursor": { "batchSize": 1 } },
            doc! { "aggregate": "c", "pipeline": [{ "$sort": { "pad": 1 } }, { "$match": { "_id": { "$gte": 0 } } },
            { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": { "n": { "$documentNumber": {} } } } }],
            "cursor": { "batchSize": 1 } },
            doc! { "aggregate": "c", "pipeline": [{ "$bucketAuto": { "groupBy": "$_id", "buckets": 5,
            "output": { "all": { "$push": "$pad" } } } }], "cursor": { "batchSize": 1 } },
            doc! { "aggregate": "c", "pipeline": [{ "$sample": { "size": 150 } }, { "$sort": { "pad": 1 } }],
            "cursor": { "batchSize": 1 } },
        ];
        for open in opened {
            let (id, _) = batch(&c.ok(open.clone()).await);
            let after_one = held(&mut c).await;
            assert!((1_000_000..4_000_000).contains(&after_one), "{after_one} bytes: {open:?}");
            let mut more = get_more(id, "c");
            more.push("batchSize", 100);
            let (id, docs) = batch(&c.ok(more).await);
            if id != 0 {
                assert_eq!(docs.len(), 100);
                // Groups go when all have been given.
                assert!(held(&mut c).await <= after_one, "{open:?}");
                c.ok(doc! { "killCursors": "c", "cursors": [id] }).await;
            }
            assert_eq!(held(&mut c).await, 0, "{open:?}");
        }
        // A scan holds nothing.
        let (id, _) = batch(&c.ok(doc! { "find": "c", "batchSize": 1 }).await);
        assert!(id != 0 && held(&mut c).await < 20_000);
        server.shut_down().await;
    });
}

async fn held(c: &mut Client) -> i64 {
    let status = c.ok(doc! { "serverStatus": 1 }).await;
    let metrics = status.get("metrics").and_then(Bson::as_doc).and_then(|m| m.get("cursor"));
    metrics.and_then(Bson::as_doc).and_then(|m| m.get("heldBytes")).and_then(Bson::as_i64).expect("a figure")
}

/// Also 0, which means no limit elsewhere.
#[test]
fn a_time_limit_is_refused_on_a_cursor_that_does_not_wait() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        insert(&mut c, "c", 0..5).await;
        let (id, _) = batch(&c.ok(doc! { "find": "c", "batchSize": 2 }).await);
        for ms in [0, 5] {
            let mut limited = get_more(id, "c");
            limited.push("maxTimeMS", ms);
            let (code, text) = c.err(limited).await;
            assert_eq!(code, 2, "{text}");
        }
        let (_, rest) = batch(&c.ok(get_more(id, "c")).await);
        assert_eq!(rest.len(), 3, "the cursor is as it was");
    });
}

/// Everything from here on, or the code of what ends the cursor.
async fn rest(c: &mut Client, id: i64, coll: &str) -> Result<usize, (i64, String)> {
    let (mut id, mut n) = (id, 0);
    while id != 0 {
        let reply = c.run(get_more(id, coll)).await;
        if let Some(code) = reply.get("code").and_then(Bson::as_i64) {
            return Err((code, reply.get("errmsg").and_then(Bson::as_str).unwrap_or_default().to_owned()));
        }
        let (next, docs) = batch(&reply);
        (id, n) = (next, n + docs.len());
    }
    Ok(n)
}

#[test]
fn an_aggregation_that_has_read_all_its_input_goes_on_without_its_collection() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let mod_7 = doc! { "$addFields": { "q": { "$mod": ["$_id", 7] } } };
        let pipelines = [
            (vec![doc! { "$group": { "_id": { "$mod": ["$_id", 20] } } }], 18),
            (vec![mod_7.clone(), doc! { "$sort": { "q": 1 } }], 98),
            (vec![doc! { "$bucketAuto": { "groupBy": "$_id", "buckets": 10 } }], 8),
            (vec![doc! { "$match": { "_id": 1 } }, doc! { "$unionWith": "other" }], 9),
            (
                vec![doc! { "$group": { "_id": 1, "all": { "$push": "$_id" } } }, doc! { "$unwind": "$all" }],
                98,
            ),
            (
                vec![
                    doc! { "$sort": { "x": 1 } },
                    mod_7,
                    doc! { "$sort": { "q": 1 } },
                    doc! { "$unionWith": "other" },
                ],
                108,
            ),
        ];
        insert(&mut c, "other", 0..10).await;
        for change in [
            doc! { "drop": "c" },
            doc! { "renameCollection": "test.c", "to": "test.d", "dropTarget": true, "$db": "admin" },
        ] {
            for (stages, expected) in &pipelines {
                c.run(doc! { "drop": "c" }).await;
                insert(&mut c, "c", 0..100).await;
                let mut aggregate = doc! { "aggregate": "c", "cursor": { "batchSize": 2 } };
                let stages = stages.iter().map(|s| Bson::Document(s.clone())).collect();
                aggregate.push("pipeline", Bson::Array(stages));
                let (id, docs) = batch(&c.ok(aggregate.clone()).await);
                assert_eq!(docs.len(), 2);
                c.ok(change.clone()).await;
                assert_eq!(rest(&mut c, id, "c").await, Ok(*expected), "{aggregate:?}");
            }
        }
        // What has more to read is ended, and so is a sort that is all of the plan.
        for stage in [doc! { "$match": { "x": 1 } }, doc! { "$sort": { "x": 1 } }] {
            let docs = (0..100).map(|i| Bson::Document(doc! { "_id": i, "x": 1 })).collect();
            c.ok(doc! { "insert": "c", "documents": Bson::Array(docs) }).await;
            let aggregate = doc! { "aggregate": "c", "cursor": { "batchSize": 2 }, "pipeline": [stage] };
            let (id, _) = batch(&c.ok(aggregate).await);
            c.ok(doc! { "drop": "c" }).await;
            assert_eq!(rest(&mut c, id, "c").await.unwrap_err().0, 175);
        }
        server.shut_down().await;
    });
}

#[test]
fn a_cursor_ends_when_the_index_that_it_walks_is_hidden_or_lives_differently() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let hidden = |name: &str| doc! { "collMod": "c", "index": { "name": name, "hidden": true } };
        let changes = [
            (hidden("x_1"), true),
            (doc! { "collMod": "c", "index": { "name": "x_1", "expireAfterSeconds": 1_000_000 } }, true),
            (doc! { "dropIndexes": "c", "index": "x_1" }, true),
            (hidden("y_2d"), false),
            (doc! { "collMod": "c", "validator": { "_id": { "$gte": 0 } } }, false),
        ];
        let by_hint = doc! { "find": "c", "hint": "x_1", "batchSize": 2 };
        let by_choice = doc! { "find": "c", "filter": { "x": { "$gte": 0 } }, "batchSize": 2 };
        let by_pipeline = doc! { "aggregate": "c", "hint": "x_1", "cursor": { "batchSize": 2 },
        "pipeline": [{ "$match": { "x": { "$gte": 0 } } }] };
        let by_place = doc! { "find": "c", "filter": { "y": { "$near": [0, 0] } }, "batchSize": 2 };
        let mut told = Vec::new();
        for (change, ends) in changes {
            told.extend(
                [&by_hint, &by_choice, &by_pipeline].map(|find| (find.clone(), change.clone(), ends)),
            );
        }
        told.push((by_place.clone(), hidden("y_2d"), true));
        told.push((by_place, hidden("x_1"), false));
        for (find, change, ends) in told {
            c.run(doc! { "drop": "c" }).await;
            let docs = (0..100).map(|i| Bson::Document(doc! { "_id": i, "x": i, "y": [i, i] })).collect();
            c.ok(doc! { "insert": "c", "documents": Bson::Array(docs) }).await;
            c.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x_1" }, { "key": { "y": "2d" }, "name": "y_2d" }] })
                .await;
            let (id, _) = batch(&c.ok(find.clone()).await);
            c.ok(change.clone()).await;
            let goes_on = rest(&mut c, id, "c").await;
            if ends {
                let (code, text) = goes_on.unwrap_err();
                assert_eq!(code, 175, "{find:?} {change:?}");
                assert!(text.starts_with("query plan killed :: index '"), "{text}");
            } else {
                assert_eq!(goes_on, Ok(98), "{find:?} {change:?}");
            }
        }
        server.shut_down().await;
    });
}

/// An id of 0 says that the results are complete.
#[test]
fn a_cursor_that_is_killed_in_the_middle_of_a_batch_is_not_told_as_exhausted() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let (mut c, mut killer) = (server.connect().await, server.connect().await);
        insert(&mut c, "c", 0..3000).await;
        for round in 0..300u64 {
            let (id, _) = batch(&c.ok(doc! { "find": "c", "batchSize": 0 }).await);
            let mut more = get_more(id, "c");
            more.push("batchSize", 2000);
            let reading = spawn(async move { (c.run(more).await, c) });
            pause(round % 4).await;
            killer.ok(doc! { "killCursors": "c", "cursors": [id] }).await;
            let (reply, back) = reading.await.expect("the getMore ends");
            c = back;
            if reply.get("ok").and_then(Bson::as_f64) == Some(1.0) {
                assert_ne!(batch(&reply).0, 0, "round {round}: 2000 of 3000 documents passed for all");
            }
        }
        server.shut_down().await;
    });
}
