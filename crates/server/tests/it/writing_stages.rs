//! `$out` and `$merge`: what they leave behind, also when they fail.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, pause, run, spawn};

fn to(stage: Document) -> Document {
    doc! { "aggregate": "source", "pipeline": [stage], "cursor": {} }
}

async fn all(c: &mut Client, coll: &str) -> Vec<Document> {
    c.all(doc! { "find": coll, "sort": { "_id": 1 } }).await
}

async fn source(c: &mut Client) {
    c.ok(doc! { "insert": "source", "documents": [{ "_id": 0, "a": 0 }, { "_id": 1, "a": 1 }, { "_id": 2, "a": 2 }] })
        .await;
}

#[test]
fn out_replaces_a_collection_and_keeps_its_indexes_and_options() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        source(&mut c).await;
        c.ok(doc! { "create": "target", "validator": { "a": { "$lt": 50 } } }).await;
        c.ok(doc! { "createIndexes": "target", "indexes": [{ "key": { "a": 1 }, "name": "a_1", "unique": true }] })
            .await;
        c.ok(doc! { "insert": "target", "documents": [{ "_id": "old", "a": 9 }] }).await;

        let reply = c.ok(to(doc! { "$out": "target" })).await;
        let cursor = reply.get("cursor").and_then(Bson::as_doc).expect("a cursor");
        assert_eq!(cursor.get("id"), Some(&Bson::Int64(0)));
        assert_eq!(cursor.get("firstBatch"), Some(&Bson::Array(Vec::new())));
        assert_eq!(all(&mut c, "target").await, all(&mut c, "source").await);
        let names: Vec<_> = c.all(doc! { "listIndexes": "target" }).await;
        assert_eq!(names.len(), 2);
        assert!(c.run(doc! { "insert": "target", "documents": [{ "a": 1 }] }).await.contains("writeErrors"));
        let listed = c.all(doc! { "listCollections": 1, "filter": { "name": "target" } }).await;
        let options = listed[0].get("options").and_then(Bson::as_doc).expect("options");
        assert!(options.contains("validator") && !options.contains("temp"));
        server.shut_down().await;
    });
}

#[test]
fn an_out_that_fails_leaves_the_target_and_no_temporary_collection() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        source(&mut c).await;
        c.ok(doc! { "createIndexes": "target", "indexes": [{ "key": { "k": 1 }, "name": "k_1", "unique": true }] })
            .await;
        c.ok(doc! { "insert": "target", "documents": [{ "_id": "old" }] }).await;
        let pipeline = Bson::Array(vec![
            Bson::Document(doc! { "$set": { "k": "same" } }),
            Bson::Document(doc! { "$out": "target" }),
        ]);
        let (code, text) = c.err(doc! { "aggregate": "source", "pipeline": pipeline, "cursor": {} }).await;
        assert_eq!(code, 11000, "{text}");
        assert_eq!(all(&mut c, "target").await, [doc! { "_id": "old" }]);
        let names = c.all(doc! { "listCollections": 1, "filter": { "name": { "$regex": "^tmp" } } }).await;
        assert!(names.is_empty(), "{names:?}");

        assert_eq!(c.err(to(doc! { "$out": { "db": "admin", "coll": "x" } })).await.0, 31321);
        let not_last =
            Bson::Array(vec![Bson::Document(doc! { "$out": "x" }), Bson::Document(doc! { "$match": {} })]);
        let early = doc! { "aggregate": "source", "pipeline": not_last, "cursor": {} };
        assert_eq!(c.err(early).await.0, 40601);
        server.shut_down().await;
    });
}

/// Somebody drops the database of the target while the results are being written.
#[test]
fn an_out_whose_temporary_collection_is_dropped_says_what_is_missing() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let (mut c, mut other) = (server.connect().await, server.connect().await);
        for i in 0..4 {
            let docs: Vec<Bson> = (0..1000)
                .map(|n| Bson::Document(doc! { "_id": i * 1000 + n, "a": "x".repeat(200) }))
                .collect();
            c.ok(doc! { "insert": "source", "documents": docs }).await;
        }
        let stages = vec![
            Bson::Document(doc! { "$set": { "b": { "$reduce": {
                "input": { "$range": [0, 500] }, "initialValue": 0, "in": { "$add": ["$$value", "$$this"] },
            } } } }),
            Bson::Document(doc! { "$out": { "db": "elsewhere", "coll": "target" } }),
        ];
        let out = doc! { "aggregate": "source", "pipeline": stages, "cursor": {} };
        let writing = spawn(async move { c.err(out).await });
        let there = doc! { "listCollections": 1, "nameOnly": true, "$db": "elsewhere" };
        while other.all(there.clone()).await.is_empty() {
            pause(1).await;
        }
        other.ok(doc! { "dropDatabase": 1, "$db": "elsewhere" }).await;
        let (code, text) = writing.await.expect("an answer");
        assert_eq!(code, 26, "{text}");
        let start = "PlanExecutor error during aggregation :: caused by :: ";
        assert!(text.starts_with(start), "{text}");
        server.shut_down().await;
    });
}

#[test]
fn neither_out_nor_merge_writes_to_a_time_series() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        source(&mut c).await;
        c.ok(doc! { "create": "ts", "timeseries": { "timeField": "t" } }).await;
        for stage in [doc! { "$out": "ts" }, doc! { "$merge": "ts" }] {
            let (code, text) = c.err(to(stage)).await;
            let start = "PlanExecutor error during aggregation :: caused by :: ";
            assert_eq!((code, text), (166, format!("{start}Namespace test.ts is a timeseries collection")));
        }
        server.shut_down().await;
    });
}

/// What `$merge` of the source makes of `[{_id: 0, a: "old", z: 1}]`.
async fn merged(c: &mut Client, spec: Document) -> Result<Vec<Document>, i32> {
    c.ok(doc! { "delete": "target", "deletes": [{ "q": {}, "limit": 0 }] }).await;
    c.ok(doc! { "insert": "target", "documents": [{ "_id": 0, "a": "old", "z": 1 }] }).await;
    let mut stage = doc! { "into": "target" };
    for (k, v) in spec {
        stage.push(k, v);
    }
    let reply = c.run(to(doc! { "$merge": stage })).await;
    match reply.get("code").and_then(Bson::as_i64) {
        Some(code) => Err(code as i32),
        None => Ok(all(c, "target").await),
    }
}

#[test]
fn merge_does_what_its_modes_say() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        source(&mut c).await;
        let rest = || vec![doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 2 }];
        let with_rest = |first: Document| [vec![first], rest()].concat();
        let mode = |m: &str| doc! { "whenMatched": m };
        assert_eq!(merged(&mut c, doc! {}).await, Ok(with_rest(doc! { "_id": 0, "a": 0, "z": 1 })));
        assert_eq!(merged(&mut c, mode("replace")).await, Ok(with_rest(doc! { "_id": 0, "a": 0 })));
        assert_eq!(
            merged(&mut c, mode("keepExisting")).await,
            Ok(with_rest(doc! { "_id": 0, "a": "old", "z": 1 }))
        );
        assert_eq!(merged(&mut c, mode("fail")).await, Err(11000));
        // The others of the batch are in all the same.
        assert_eq!(all(&mut c, "target").await.len(), 3);
        let discard = doc! { "whenMatched": "replace", "whenNotMatched": "discard" };
        assert_eq!(merged(&mut c, discard).await, Ok(vec![doc! { "_id": 0, "a": 0 }]));
        assert_eq!(merged(&mut c, doc! { "whenNotMatched": "fail" }).await, Err(13113));
        let pipeline = doc! { "let": { "twice": { "$add": ["$a", "$a"] } },
        "whenMatched": [{ "$set": { "from": "$$new._id", "twice": "$$twice" } }] };
        assert_eq!(
            merged(&mut c, pipeline).await,
            Ok(with_rest(doc! { "_id": 0, "a": "old", "z": 1, "from": 0, "twice": 0 }))
        );
        assert_eq!(merged(&mut c, doc! { "on": "a" }).await, Err(51183));
        server.shut_down().await;
    });
}

#[test]
fn merge_on_other_fields_needs_them_unique_and_there() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        source(&mut c).await;
        c.ok(doc! { "createIndexes": "target", "indexes": [{ "key": { "a": 1 }, "name": "a_1", "unique": true }] })
            .await;
        c.ok(doc! { "insert": "target", "documents": [{ "_id": "kept", "a": 1 }] }).await;
        let stages = |project: Document| {
            let merge = doc! { "$merge": { "into": "target", "on": "a" } };
            let both = vec![Bson::Document(doc! { "$project": project }), Bson::Document(merge)];
            doc! { "aggregate": "source", "pipeline": Bson::Array(both), "cursor": {} }
        };
        c.ok(stages(doc! { "_id": 0, "a": 1, "seen": "yes" })).await;
        let found = c.all(doc! { "find": "target", "filter": { "a": 1 } }).await;
        assert_eq!(found, [doc! { "_id": "kept", "a": 1, "seen": "yes" }]);
        assert_eq!(all(&mut c, "target").await.len(), 3);
        assert_eq!(c.err(stages(doc! { "b": 1 })).await.0, 51132);
        assert_eq!(c.err(stages(doc! { "a": ["$a"] })).await.0, 51185);
        server.shut_down().await;
    });
}
