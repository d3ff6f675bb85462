//! Collections without rows of their own: they read like any other, and nothing takes their place.

#![allow(clippy::unwrap_used)]

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, World, pause, run};

fn retryable(mut command: Document, session: u8, number: i64) -> Document {
    let id = Bson::Binary(Binary { subtype: 4, bytes: vec![session; 16] });
    command.push("lsid", doc! { "id": id });
    command.push("txnNumber", number);
    command
}

/// Five sessions have written, the last two with a findAndModify.
async fn with_sessions(c: &mut Client) {
    for session in 1..=3u8 {
        let insert = doc! { "insert": "c", "documents": [{ "_id": i32::from(session) }] };
        c.ok(retryable(insert, session, i64::from(session))).await;
    }
    for session in 4..=5u8 {
        let remove =
            doc! { "findAndModify": "c", "query": { "_id": i32::from(session) - 3 }, "remove": true };
        c.ok(retryable(remove, session, i64::from(session))).await;
    }
}

fn on(db: &str, mut command: Document) -> Document {
    command.push("$db", db);
    command
}

fn batch(reply: &Document) -> Vec<Document> {
    let cursor = reply.get("cursor").and_then(Bson::as_doc).unwrap();
    let rows = cursor.get("firstBatch").or(cursor.get("nextBatch")).and_then(Bson::as_array).unwrap();
    rows.iter().map(|row| row.as_doc().unwrap().clone()).collect()
}

fn numbers(rows: &[Document]) -> Vec<i64> {
    rows.iter().map(|row| row.get("txnNum").and_then(Bson::as_i64).unwrap()).collect()
}

#[test]
fn the_table_of_sessions_reads_like_a_collection() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        with_sessions(&mut c).await;
        for (name, all) in [("transactions", vec![1, 2, 3, 4, 5]), ("image_collection", vec![4, 5])] {
            let mut ask = async |command: Document| c.ok(on("config", command)).await;
            let by_number = doc! { "txnNum": 1 };
            let single = doc! { "find": name, "singleBatch": true, "limit": 1, "sort": { "txnNum": -1 },
            "projection": { "txnNum": 1, "_id": 0 } };
            assert_eq!(batch(&ask(single).await), [doc! { "txnNum": 5i64 }]);
            let some =
                doc! { "find": name, "filter": { "txnNum": { "$gt": 3i64 } }, "sort": by_number.clone() };
            assert_eq!(numbers(&batch(&ask(some).await)), [4, 5]);
            let count = ask(doc! { "count": name }).await;
            assert_eq!(count.get("n"), Some(&Bson::Int32(all.len() as i32)));
            let count = ask(doc! { "count": name, "query": { "txnNum": 4i64 } }).await;
            assert_eq!(count.get("n"), Some(&Bson::Int32(1)));
            let distinct = ask(doc! { "distinct": name, "key": "txnNum" }).await;
            let wanted: Vec<Bson> = all.iter().map(|n| Bson::Int64(*n)).collect();
            assert_eq!(distinct.get("values"), Some(&Bson::Array(wanted)));
            let sum = doc! { "aggregate": name, "cursor": {},
            "pipeline": [{ "$group": { "_id": Bson::Null, "n": { "$sum": "$txnNum" } } }] };
            assert_eq!(batch(&ask(sum).await)[0].get("n"), Some(&Bson::Int64(all.iter().sum())));
            let first = batch(&ask(doc! { "find": name, "sort": by_number.clone(), "limit": 1 }).await);
            let id = first[0].get("_id").unwrap().clone();
            for hint in [doc! {}, doc! { "_id": 1 }, doc! { "$natural": -1 }] {
                let by_id = doc! { "find": name, "filter": { "_id": id.clone() }, "hint": hint };
                assert_eq!(batch(&ask(by_id).await), first);
            }
            let listed = ask(doc! { "listCollections": 1, "filter": { "name": name } }).await;
            assert_eq!(batch(&listed).len(), 1);
            let indexes = ask(doc! { "listIndexes": name }).await;
            assert_eq!(batch(&indexes)[0].get("name").and_then(Bson::as_str), Some("_id_"));
            let plan = ask(doc! { "explain": { "find": name }, "verbosity": "executionStats" }).await;
            let run = plan.get("executionStats").and_then(Bson::as_doc).unwrap();
            assert_eq!(run.get("nReturned").and_then(Bson::as_i64), Some(all.len() as i64));
            let stats = ask(
                doc! { "aggregate": name, "cursor": {}, "pipeline": [{ "$collStats": { "count": {} } }] },
            );
            let counted = batch(&stats.await)[0].get("count").and_then(Bson::as_i64);
            assert_eq!(counted, Some(all.len() as i64));
            let valid = ask(doc! { "validate": name }).await;
            assert_eq!(valid.get("nrecords").and_then(Bson::as_i64), Some(all.len() as i64));
            let tailing = c.err(on("config", doc! { "find": name, "tailable": true })).await;
            assert!(
                tailing.0 == 2 && tailing.1.contains("tailable cursor requested on non capped"),
                "{tailing:?}"
            );
        }
        server.shut_down().await;
    });
}

#[test]
fn a_cursor_over_the_table_of_sessions_goes_on_where_it_was_while_sessions_come() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        with_sessions(&mut c).await;
        let first = c.ok(on("config", doc! { "find": "transactions", "batchSize": 2 })).await;
        let mut seen = numbers(&batch(&first));
        let id = first.get("cursor").and_then(|v| v.as_doc()?.get("id")?.as_i64()).unwrap();
        c.ok(retryable(doc! { "insert": "c", "documents": [{ "_id": "late" }] }, 0, 77)).await;
        loop {
            let more = on("config", doc! { "getMore": id, "collection": "transactions", "batchSize": 1 });
            let more = c.ok(more).await;
            seen.extend(numbers(&batch(&more)));
            if more.get("cursor").and_then(|v| v.as_doc()?.get("id")?.as_i64()) == Some(0) {
                break;
            }
        }
        assert_eq!(seen, [1, 2, 3, 4, 5]);
        server.shut_down().await;
    });
}

#[test]
fn nothing_takes_the_place_of_the_table_of_sessions() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        with_sessions(&mut c).await;
        c.ok(doc! { "create": "other" }).await;
        for name in ["transactions", "image_collection"] {
            let full = format!("config.{name}");
            let rename =
                |from: &str, to: &str| doc! { "renameCollection": from, "to": to, "dropTarget": true };
            for (db, command, code) in [
                ("config", doc! { "insert": name, "documents": [{ "_id": 1 }] }, 73),
                (
                    "config",
                    doc! { "update": name, "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }] },
                    73,
                ),
                ("config", doc! { "delete": name, "deletes": [{ "q": {}, "limit": 0 }] }, 73),
                ("config", doc! { "findAndModify": name, "query": {}, "remove": true }, 73),
                ("config", doc! { "create": name, "capped": true, "size": 4096 }, 48),
                ("config", doc! { "create": name, "viewOn": "x", "pipeline": [] }, 48),
                ("config", doc! { "drop": name }, 20),
                (
                    "config",
                    doc! { "createIndexes": name, "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
                    20,
                ),
                ("config", doc! { "convertToCapped": name, "size": 4096 }, 20),
                ("config", doc! { "cloneCollectionAsCapped": "x", "toCollection": name, "size": 4096 }, 48),
                ("admin", rename(&full, "config.x"), 20),
                ("admin", rename("test.other", &full), 20),
            ] {
                let (found, text) = c.err(on(db, command.clone())).await;
                assert_eq!(found, code, "{command:?}: {text}");
            }
        }
        c.ok(on("config", doc! { "dropDatabase": 1 })).await;
        assert_eq!(c.all(on("config", doc! { "find": "transactions" })).await.len(), 5);
        // And what is known of the sessions is what it was.
        let again = retryable(doc! { "insert": "c", "documents": [{ "_id": 3 }] }, 3, 3);
        assert!(c.ok(again).await.contains("retriedStmtIds"));
        server.shut_down().await;
    });
}

#[test]
fn a_dump_with_the_log_finds_all_it_asks_for() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        with_sessions(&mut c).await;
        c.ok(doc! { "create": "capped", "capped": true, "size": 65536 }).await;
        c.ok(doc! { "create": "series", "timeseries": { "timeField": "t" } }).await;
        c.ok(doc! { "create": "view", "viewOn": "c", "pipeline": [] }).await;
        // The oldest transaction that is open, then the newest entry: where the copy of the log begins.
        let open = doc! { "find": "transactions", "filter": { "state": { "$in": ["prepared", "inProgress"] } },
        "sort": { "startOpTime": 1 }, "limit": 1, "singleBatch": true };
        assert_eq!(batch(&c.ok(on("config", open)).await), Vec::<Document>::new());
        let newest = doc! { "find": "oplog.rs", "filter": {}, "sort": { "$natural": -1 }, "limit": 1,
        "singleBatch": true };
        let newest = batch(&c.ok(on("local", newest)).await);
        let from = newest[0].get("ts").unwrap().clone();
        // What there is, and each of it in the order of its rows.
        let listed = c.all(doc! { "listCollections": 1, "filter": {}, "cursor": {} }).await;
        let mut names: Vec<_> = listed.iter().filter_map(|l| l.get("name")?.as_str()).collect();
        names.sort();
        assert_eq!(names, ["c", "capped", "series", "system.buckets.series", "system.views", "view"]);
        for name in ["c", "capped", "system.buckets.series", "system.views"] {
            c.ok(doc! { "count": name }).await;
            c.ok(doc! { "listIndexes": name, "cursor": {} }).await;
            c.all(doc! { "find": name, "hint": { "_id": 1 }, "noCursorTimeout": true }).await;
            c.all(doc! { "find": name, "sort": { "$natural": 1 }, "noCursorTimeout": true }).await;
        }
        for n in 0..3 {
            c.ok(doc! { "insert": "c", "documents": [{ "_id": format!("during{n}") }] }).await;
        }
        // The log since, which must still reach back to where the copy began.
        let newest = batch(
            &c.ok(on("local", doc! { "find": "oplog.rs", "sort": { "$natural": -1 }, "limit": 1 })).await,
        );
        let to = newest[0].get("ts").unwrap().clone();
        let oldest = doc! { "find": "oplog.rs", "sort": { "$natural": 1 }, "limit": 1, "singleBatch": true };
        assert_eq!(batch(&c.ok(on("local", oldest)).await).len(), 1);
        let since = doc! { "find": "oplog.rs", "oplogReplay": true, "noCursorTimeout": true,
        "filter": { "ts": { "$gte": from, "$lte": to } } };
        let since = c.all(on("local", since)).await;
        let inserts = since.iter().filter(|e| e.get("op").and_then(Bson::as_str) == Some("i")).count();
        assert_eq!(inserts, 4, "the newest entry, which made the view, and three: {since:?}");
        for db in ["config", "admin", "local"] {
            for listed in c.all(on(db, doc! { "listCollections": 1 })).await {
                let name = listed.get("name").and_then(Bson::as_str).unwrap().to_owned();
                c.ok(on(db, doc! { "find": name.as_str(), "limit": 1, "singleBatch": true })).await;
                c.ok(on(db, doc! { "count": name.as_str() })).await;
            }
        }
        server.shut_down().await;
    });
}

/// The rows of a collection that `listCollections` names, too.
async fn listed(c: &mut Client, db: &str, name: &str) -> Vec<Document> {
    let found = c.all(on(db, doc! { "listCollections": 1, "filter": { "name": name } })).await;
    assert_eq!(found.len(), 1, "{db}.{name} is listed");
    let rows = c.all(on(db, doc! { "find": name })).await;
    let count = c.ok(on(db, doc! { "count": name })).await;
    assert_eq!(count.get("n").and_then(Bson::as_i64), Some(rows.len() as i64));
    rows
}

#[test]
fn the_feature_version_stands_in_its_document_before_anybody_changes_it() {
    run(async {
        for replicated in [true, false] {
            let world = World::new();
            let server = if replicated { world.start_set().await } else { world.start_standalone().await };
            let mut c = server.connect().await;
            let wanted = doc! { "_id": "featureCompatibilityVersion", "version": "7.0" };
            assert_eq!(listed(&mut c, "admin", "system.version").await, [wanted]);
            server.shut_down().await;
        }
    });
}

#[test]
fn each_start_leaves_a_row_in_the_log_of_starts() {
    run(async {
        let world = World::new();
        for starts in 1..=2 {
            let server = world.start_set().await;
            let mut c = server.connect().await;
            let rows = listed(&mut c, "local", "startup_log").await;
            assert_eq!(rows.len(), starts);
            let names: Vec<&str> = rows[0].iter().map(|(name, _)| name).collect();
            let wanted = ["_id", "hostname", "startTime", "startTimeLocal", "cmdLine", "pid", "buildinfo"];
            assert_eq!(names, wanted);
            let built = rows[starts - 1].get("buildinfo").and_then(Bson::as_doc).unwrap();
            assert_eq!(built.get("bits"), Some(&Bson::Int32(64)));
            let options = doc! { "listCollections": 1, "filter": { "name": "startup_log" } };
            let options = batch(&c.ok(on("local", options)).await)[0].get("options").cloned();
            let options = options.as_ref().and_then(Bson::as_doc).unwrap();
            assert_eq!(options.get("capped"), Some(&Bson::Boolean(true)));
            assert_eq!(options.get("size").and_then(Bson::as_i64), Some(10 << 20));
            server.shut_down().await;
            pause(5).await;
        }
    });
}

#[test]
fn what_a_member_keeps_of_itself_reads_as_documents() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let rollbacks = listed(&mut c, "local", "system.rollback.id").await;
        assert_eq!(rollbacks, [doc! { "_id": "rollbackId", "rollbackId": 1 }]);
        let votes = listed(&mut c, "local", "replset.election").await;
        assert_eq!(votes.len(), 1);
        assert_eq!(votes[0].get("term"), Some(&Bson::Int64(1)));
        assert_eq!(votes[0].get("candidateIndex"), Some(&Bson::Int64(0)));
        let valid = listed(&mut c, "local", "replset.minvalid").await;
        assert_eq!(valid.len(), 1);
        assert_eq!(valid[0].get("t"), Some(&Bson::Int64(-1)));
        assert!(matches!(valid[0].get("ts"), Some(Bson::Timestamp(_))));
        let (code, _) = c
            .err(on("local", doc! { "delete": "replset.minvalid", "deletes": [{ "q": {}, "limit": 0 }] }))
            .await;
        assert_eq!(code, 73);
        server.shut_down().await;
    });
}
