//! Settings of a set and of databases: cluster parameters, profile filters.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{World, run};

fn first<'a>(reply: &'a Document, list: &str) -> &'a Document {
    reply.get(list).and_then(Bson::as_array).unwrap()[0].as_doc().unwrap()
}

#[test]
fn a_cluster_parameter_is_stored_shown_and_in_force_after_a_start() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let get = || doc! { "getClusterParameter": "changeStreamOptions", "$db": "admin" };
        let seconds = |reply: &Document| {
            let images =
                first(reply, "clusterParameters").get("preAndPostImages").and_then(Bson::as_doc).unwrap();
            images.get("expireAfterSeconds").cloned().unwrap()
        };
        assert_eq!(seconds(&c.ok(get()).await), Bson::String("off".to_owned()));
        let set = |v: Bson| {
            let images = doc! { "preAndPostImages": { "expireAfterSeconds": v } };
            doc! { "setClusterParameter": { "changeStreamOptions": images }, "$db": "admin" }
        };
        c.ok(set(Bson::Int32(7))).await;
        assert_eq!(seconds(&c.ok(get()).await), Bson::Int64(7));
        for wrong in [Bson::Int32(0), Bson::Int32(-1), Bson::String("on".to_owned()), Bson::Null] {
            assert_eq!(c.err(set(wrong)).await.0, 2);
        }
        assert_eq!(c.err(doc! { "setClusterParameter": { "nosuch": {} }, "$db": "admin" }).await.0, 20);
        assert_eq!(c.err(doc! { "getClusterParameter": "nosuch", "$db": "admin" }).await.0, 4);
        drop(c);
        let port = server.port;
        server.shut_down().await;
        let server = world.start_at(port, |config| config.repl_set = Some("rs".to_owned())).await;
        let mut c = server.connect().await;
        assert_eq!(seconds(&c.ok(get()).await), Bson::Int64(7));
    });
}

#[test]
fn a_profile_filter_chooses_the_operations_of_its_database() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }] }).await;
        let filter = doc! { "op": "query", "nreturned": { "$gt": 1 } };
        let set = c.ok(doc! { "profile": 1, "filter": filter }).await;
        assert!(set.get("note").is_some(), "{set:?}");
        c.ok(doc! { "find": "c", "filter": { "_id": 1 } }).await;
        c.ok(doc! { "find": "c" }).await;
        let shown = c.ok(doc! { "profile": -1 }).await;
        assert_eq!((shown.get("was"), shown.get("filter").is_some()), (Some(&Bson::Int32(1)), true));
        c.ok(doc! { "profile": 0, "filter": "unset" }).await;
        let mut found = Vec::new();
        for _ in 0..100 {
            let reply = c.ok(doc! { "find": "system.profile" }).await;
            let cursor = reply.get("cursor").and_then(Bson::as_doc).unwrap();
            found = cursor.get("firstBatch").and_then(Bson::as_array).unwrap().to_vec();
            if !found.is_empty() {
                break;
            }
            pando_testserver::pause(10).await;
        }
        assert_eq!(found.len(), 1, "{found:?}");
        let entry = found[0].as_doc().unwrap();
        assert_eq!(
            (entry.get("op"), entry.get("nreturned")),
            (Some(&Bson::String("query".to_owned())), Some(&Bson::Int64(2)))
        );
        assert!(entry.get("numYield").is_some() && entry.get("responseLength").is_some());
        assert_eq!(c.err(doc! { "profile": 0, "filter": { "nosuch": 1 } }).await.0, 4_910_200);
        c.ok(doc! { "profile": -1, "filter": { "": 1 } }).await;
        assert_eq!(c.err(doc! { "profile": 0, "filter": { ".a": 1 } }).await.0, 15998);
        assert_eq!(c.err(doc! { "profile": 0, "filter": { "$or": [{ "a.": 1 }] } }).await.0, 40353);
        assert_eq!(c.err(doc! { "profile": 0, "filter": { "ns.$x": 1 } }).await.0, 16410);
        assert_eq!(c.err(doc! { "profile": 0, "filter": { "$where": "1" } }).await.0, 2);
    });
}

#[test]
fn data_size_counts_a_range_of_an_index_up_to_a_bound() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let docs = (0..10).map(|i| Bson::Document(doc! { "_id": i, "a": i % 5 })).collect::<Vec<_>>();
        c.ok(doc! { "insert": "c", "documents": Bson::Array(docs) }).await;
        let sparse = doc! { "key": { "a": 1 }, "name": "a_1", "sparse": true };
        c.ok(doc! { "createIndexes": "c", "indexes": [sparse] }).await;
        let each = doc! { "_id": 0, "a": 0 }.to_raw().byte_len() as i64;
        let (from, to) = (doc! { "_id": 2 }, doc! { "_id": 6 });
        for (more, n, reached) in [
            (doc! {}, 10, false),
            (doc! { "min": from.clone(), "max": to.clone() }, 4, false),
            (doc! { "min": from, "max": to, "maxObjects": 2 }, 3, true),
            (doc! { "maxSize": each + 1 }, 2, true),
        ] {
            let mut command = doc! { "dataSize": "test.c" };
            more.iter().for_each(|(name, v)| command.push(name, v.clone()));
            let reply = c.ok(command).await;
            let told = |name: &str| reply.get(name).and_then(Bson::as_i64);
            assert_eq!((told("numObjects"), told("size")), (Some(n), Some(n * each)), "{reply:?}");
            assert_eq!(reply.get("maxReached").is_some(), reached);
        }
        for (min, max) in [(doc! { "x": 1 }, doc! { "x": 2 }), (doc! { "a": 1 }, doc! { "a": 2 })] {
            assert_eq!(c.err(doc! { "dataSize": "test.c", "min": min, "max": max }).await.0, 2);
        }
    });
}

#[test]
fn what_is_outside_the_stable_api_is_named() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let sparse = doc! { "key": { "a": 1 }, "name": "a_1", "sparse": true };
        c.ok(doc! { "createIndexes": "c", "indexes": [sparse] }).await;
        let ask = |strict: bool| doc! { "validateDBMetadata": 1, "db": "test", "apiParameters": { "version": "1", "strict": strict } };
        let found = c.ok(ask(true)).await;
        let text = first(&found, "apiVersionErrors").get("errmsg").and_then(Bson::as_str).unwrap();
        assert_eq!(text, "The index with name a_1 is not allowed in API version 1.");
        assert_eq!(c.ok(ask(false)).await.get("apiVersionErrors"), Some(&Bson::Array(Vec::new())));
        c.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [{ "$indexStats": {} }] }).await;
        assert_eq!(c.err(ask(true)).await.0, 323);
        assert_eq!(c.err(doc! { "validateDBMetadata": 1 }).await.0, 40414);
        let long = "y".repeat(64);
        for (db, code) in [(long.as_str(), 13280), ("a b", 13280), ("a.b", 28539), ("", 28539)] {
            let named = doc! { "validateDBMetadata": 1, "db": db, "apiParameters": { "version": "1" } };
            assert_eq!(c.err(named).await.0, code, "{db}");
        }
        c.ok(doc! { "validateDBMetadata": 1, "db": "a$b", "apiParameters": { "version": "1" } }).await;
    });
}
