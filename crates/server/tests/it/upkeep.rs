//! What operators ask of a member: digests, checks, the size of the log, and which collections are the server's own.
#![allow(clippy::disallowed_methods)]

use pando_base::Timestamp;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

/// A one-member set and a connection to it.
async fn set() -> (World, pando_testserver::Running, Client) {
    let world = World::new();
    let server = world.start_set().await;
    let client = server.connect().await;
    (world, server, client)
}

fn field<'a>(d: &'a Document, path: &str) -> Option<&'a Bson> {
    match path.split_once('.') {
        None => d.get(path),
        Some((first, rest)) => field(d.get(first)?.as_doc()?, rest),
    }
}

#[test]
fn a_database_is_hashed_as_it_was_at_a_timestamp() {
    run(async {
        let (_world, server, mut c) = set().await;
        let done = c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }] }).await;
        let Some(Bson::Timestamp(then)) = done.get("operationTime").cloned() else { panic!("{done:?}") };
        let before = c.ok(doc! { "dbHash": 1 }).await;
        c.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] }).await;
        let md5 = |d: &Document| field(d, "collections.c").cloned();
        assert_ne!(md5(&c.ok(doc! { "dbHash": 1 }).await), md5(&before));
        let at = |ts: Timestamp| doc! { "dbHash": 1, "$_internalReadAtClusterTime": ts };
        assert_eq!(md5(&c.ok(at(then)).await), md5(&before));
        let snapshot = doc! { "level": "snapshot", "atClusterTime": then };
        assert_eq!(md5(&c.ok(doc! { "dbHash": 1, "readConcern": snapshot }).await), md5(&before));
        let only = c.ok(doc! { "dbHash": 1, "collections": ["nope"] }).await;
        assert_eq!(only.get("md5").and_then(Bson::as_str), Some("d41d8cd98f00b204e9800998ecf8427e"));
        assert_eq!(c.err(at(Timestamp::ZERO)).await.0, 72);
        assert_eq!(c.err(at(Timestamp::new(4_000_000_000, 1))).await.0, 72);
        assert_eq!(c.err(at(Timestamp::new(1, 1))).await.0, 246, "the collection was not there");
        assert_eq!(c.err(doc! { "dbHash": 1, "$_internalReadAtClusterTime": 5 }).await.0, 14);
        let majority = c.err(doc! { "dbHash": 1, "readConcern": { "level": "majority" } }).await;
        assert_eq!(majority.0, 72);
        server.shut_down().await;
    });
}

#[test]
fn validate_looks_at_as_much_as_it_is_told() {
    run(async {
        let (_world, server, mut c) = set().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "a": 1 }, { "_id": 2, "a": [1, 2] }] }).await;
        c.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] }).await;
        for how in ["full", "background", "enforceFastCount", "checkBSONConformance"] {
            let mut command = doc! { "validate": "c" };
            command.push(how, true);
            let r = c.ok(command).await;
            assert_eq!(field(&r, "valid"), Some(&Bson::Boolean(true)), "{r:?}");
            assert_eq!(field(&r, "nrecords").and_then(Bson::as_i64), Some(2));
            assert_eq!(field(&r, "keysPerIndex.a").and_then(Bson::as_i64), Some(3));
            assert_eq!(r.get("readTimestamp").is_some(), how == "background");
        }
        let r = c.ok(doc! { "validate": "c", "metadata": true }).await;
        assert!(r.get("valid").is_some() && r.get("nrecords").is_none());
        for (a, b) in [
            ("background", "full"),
            ("background", "enforceFastCount"),
            ("metadata", "full"),
            ("metadata", "background"),
        ] {
            let mut command = doc! { "validate": "c" };
            command.push(a, true);
            command.push(b, true);
            assert_eq!(c.err(command).await.0, 72, "{a} {b}");
        }
        assert_eq!(c.err(doc! { "validate": "c", "repair": true }).await.0, 72);
        assert_eq!(c.err(doc! { "validate": "nope" }).await.0, 26);
        server.shut_down().await;
    });
}

#[test]
fn the_oplog_is_resized_and_keeps_what_is_young() {
    run(async {
        let (world, server, mut c) = set().await;
        let resize = |name: &str, value: f64| {
            let mut d = doc! { "replSetResizeOplog": 1, "$db": "admin" };
            d.push(name, value);
            d
        };
        assert_eq!(
            c.err(resize("size", 5.0)).await,
            (51024, "BSON field 'size' value must be >= 990, actual value '5'".to_owned())
        );
        assert_eq!(
            c.err(resize("size", 2e9)).await,
            (51024, "BSON field 'size' value must be <= 1.07374e+09, actual value '2e+09'".to_owned())
        );
        assert_eq!(c.err(resize("minRetentionHours", -1.0)).await.0, 51024);
        c.ok(resize("size", 1000.0)).await;
        let stats = c.ok(doc! { "collStats": "oplog.rs", "$db": "local" }).await;
        assert_eq!(field(&stats, "maxSize").and_then(Bson::as_i64), Some(1000 << 20));
        c.ok(resize("minRetentionHours", 1.5)).await;
        let status = c.admin(doc! { "serverStatus": 1 }).await;
        let hours = field(&status, "oplogTruncation.oplogMinRetentionHours");
        assert_eq!(hours.and_then(Bson::as_f64), Some(1.5));
        server.shut_down().await;
        let server = world.start_set().await;
        let stats = server.connect().await.ok(doc! { "collStats": "oplog.rs", "$db": "local" }).await;
        assert_eq!(
            field(&stats, "maxSize").and_then(Bson::as_i64),
            Some(1000 << 20),
            "it outlives the process"
        );
        server.shut_down().await;
    });
}

#[test]
fn collections_of_the_server_itself_are_kept_from_harm() {
    run(async {
        let (_world, server, mut c) = set().await;
        let put = |db: &str, coll: &str| doc! { "insert": coll, "documents": [{ "_id": 1 }], "$db": db };
        for (db, coll) in [
            ("test", "system.foo"),
            ("test", "system.views"),
            ("test", "system.profile"),
            ("local", "oplog.rs"),
            ("local", "system.rollback.id"),
            ("admin", "system.new_users"),
            ("test", "system.version"),
        ] {
            assert_eq!(c.err(put(db, coll)).await.0, 73, "{db}.{coll}");
        }
        for (db, coll) in [("test", "system.js"), ("admin", "system.users"), ("config", "system.indexBuilds")]
        {
            c.ok(put(db, coll)).await;
            let kept = c.err(doc! { "drop": coll, "$db": db }).await;
            assert_eq!(kept, (20, format!("can't drop system collection {db}.{coll}")));
        }
        assert_eq!(c.err(doc! { "drop": "system.version", "$db": "admin" }).await.0, 20);
        assert_eq!(c.err(doc! { "drop": "oplog.rs", "$db": "local" }).await.0, 5_255_000);
        c.ok(doc! { "insert": "src", "documents": [{}] }).await;
        let rename = |a: &str, b: &str| doc! { "renameCollection": a, "to": b, "$db": "admin" };
        for (a, b, text) in [
            ("local.oplog.rs", "local.x", "can't rename live oplog while replicating"),
            ("test.src", "local.oplog.rs", "can't rename to live oplog while replicating"),
            (
                "test.src",
                "test.system.views",
                "error with target namespace: cannot write to test.system.views",
            ),
            (
                "test.src",
                "test.system.foo",
                "error with target namespace: Invalid system namespace: test.system.foo",
            ),
            (
                "admin.system.version",
                "admin.x",
                "renaming the server configuration collection (admin.system.version) is not allowed",
            ),
            (
                "test.src",
                "local.src",
                "Cannot rename collections between a replicated and an unreplicated database",
            ),
        ] {
            assert_eq!(c.err(rename(a, b)).await, (20, text.to_owned()));
        }
        let index = doc! { "key": { "a": 1 }, "name": "a" };
        let sessions = doc! { "createIndexes": "transactions", "indexes": [index], "$db": "config" };
        assert_eq!(c.err(sessions).await.0, 20);
        c.ok(doc! { "create": "view", "viewOn": "src", "pipeline": [] }).await;
        for (db, coll) in [("test", "system.views"), ("config", "system.indexBuilds")] {
            let (code, text) = c.err(doc! { "convertToCapped": coll, "size": 4096, "$db": db }).await;
            let named = text.starts_with(&format!("Invalid namespace: {db}.tmp"));
            assert!(code == 2 && named && text.ends_with(&format!(".convertToCapped.{coll}")), "{text}");
        }
        assert_eq!(c.err(doc! { "convertToCapped": "system.foo", "size": 4096 }).await.0, 26);
        let oplog = doc! { "convertToCapped": "oplog.rs", "size": 4096, "$db": "local" };
        assert_eq!(c.err(oplog).await.0, 20, "MongoDB lets its users do it, and does not survive it");
        for index in ["*", "_id_", "none"] {
            let told = c.err(doc! { "dropIndexes": "system.views", "index": index }).await;
            assert_eq!(
                told,
                (51_070, "Modifications to system.views must take an exclusive lock".to_owned())
            );
        }
        server.shut_down().await;
    });
}

#[test]
fn sizes_that_no_capped_collection_can_have_are_refused() {
    run(async {
        let (_world, server, mut c) = set().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }] }).await;
        let (few, many) = ("size has to be >= 0", "size cannot exceed 1 PB");
        let infinite = "Infinity".parse::<pando_bson::Decimal128>().unwrap();
        // What each of the two commands says, as recorded from a real server.
        let cases: [(Bson, &str, &str); 10] = [
            (i64::MAX.into(), many, few),
            ((i64::MAX - 255).into(), many, few),
            ((1i64 << 62).into(), many, many),
            (((1i64 << 50) + 1).into(), many, many),
            (f64::INFINITY.into(), many, few),
            (f64::NEG_INFINITY.into(), few, few),
            (f64::NAN.into(), "invalid command spec", few),
            (i64::MIN.into(), few, few),
            ((-1).into(), few, few),
            (Bson::Decimal128(infinite), many, few),
        ];
        for (size, converted, cloned) in cases {
            let told = c.err(doc! { "convertToCapped": "c", "size": size.clone() }).await.1;
            assert_eq!(told, converted, "{size:?}");
            let clone = doc! { "cloneCollectionAsCapped": "c", "toCollection": "d", "size": size.clone() };
            assert_eq!(c.err(clone).await.1, cloned, "{size:?}");
        }
        c.ok(doc! { "convertToCapped": "c", "size": 1i64 << 50 }).await;
        server.shut_down().await;
    });
}
