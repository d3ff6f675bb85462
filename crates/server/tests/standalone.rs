//! A server outside any replica set.

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{World, run};

#[test]
fn a_standalone_server_has_no_oplog_and_no_cluster_time() {
    run(async {
        let world = World::new();
        let server = world.start_standalone().await;
        let mut c = server.connect().await;
        let hello = c.ok(doc! { "hello": 1 }).await;
        assert_eq!(hello.get("isWritablePrimary"), Some(&Bson::Boolean(true)));
        assert!(!hello.contains("setName") && !hello.contains("lastWrite"));
        let reply = c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        for name in ["$clusterTime", "operationTime", "opTime", "electionId"] {
            assert!(!reply.contains(name), "{name}");
        }
        assert!(c.all(doc! { "find": "oplog.rs", "$db": "local" }).await.is_empty());
        assert!(!c.ok(doc! { "serverStatus": 1 }).await.contains("repl"));
        server.shut_down().await;
    });
}

#[test]
fn a_standalone_server_refuses_what_needs_a_set() {
    run(async {
        let world = World::new();
        let server = world.start_standalone().await;
        let mut c = server.connect().await;
        let mut refused = async |d: Document| c.err(d).await.0;
        assert_eq!(refused(doc! { "replSetGetStatus": 1, "$db": "admin" }).await, 76);
        assert_eq!(refused(doc! { "replSetInitiate": {}, "$db": "admin" }).await, 76);
        let id = Bson::Binary(Binary { subtype: 4, bytes: vec![1; 16] });
        let mut retryable = doc! { "insert": "c", "documents": [{ "_id": 1 }], "txnNumber": 1i64 };
        retryable.push("lsid", doc! { "id": id });
        assert_eq!(refused(retryable).await, 20);
        assert_eq!(refused(doc! { "find": "c", "readConcern": { "level": "snapshot" } }).await, 123);
        let two = doc! { "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": { "w": 2 } };
        assert_eq!(refused(two).await, 2);
        let build =
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }], "commitQuorum": 1 };
        assert_eq!(refused(build).await, 2);
        server.shut_down().await;
    });
}

#[test]
fn a_standalone_servers_data_and_definitions_survive_restart_and_crash() {
    run(async {
        let world = World::new();
        let server = world.start_standalone().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "c", "validator": { "a": { "$type": "int" } } }).await;
        c.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": -1 }, "name": "a" }] }).await;
        for i in 0..30 {
            let insert =
                doc! { "insert": "c", "documents": [{ "_id": i, "a": i }], "writeConcern": { "j": true } };
            c.ok(insert).await;
        }
        server.shut_down().await;

        let server = world.start_standalone().await;
        let mut c = server.connect().await;
        let drop = doc! { "delete": "c", "deletes": [{ "q": { "a": { "$gte": 20 } }, "limit": 0 }],
        "writeConcern": { "j": true } };
        c.ok(drop).await;
        server.abandon();

        let server = world.start_standalone().await;
        let mut c = server.connect().await;
        let found = c.all(doc! { "find": "c", "sort": { "a": 1 }, "hint": "a" }).await;
        assert_eq!(found.len(), 20);
        let bad = c.run(doc! { "insert": "c", "documents": [{ "a": "text" }] }).await;
        assert!(bad.contains("writeErrors"));
        assert_eq!(c.ok(doc! { "validate": "c" }).await.get("valid"), Some(&Bson::Boolean(true)));
        server.shut_down().await;
    });
}
