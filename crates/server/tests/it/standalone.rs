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

#[test]
fn a_sets_member_started_alone_can_be_looked_at_and_comes_back_unchanged() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": { "w": "majority" } }).await;
        server.shut_down().await;
        let stable = {
            let server = world.start_standalone().await;
            let (stable, last) = (server.server.storage.stable(), server.server.storage.log().last());
            // For maintenance it may be written to; what the set might have to undo stays above stable.
            let mut c = server.connect().await;
            c.ok(doc! { "insert": "maintenance", "documents": [{ "_id": 1 }] }).await;
            c.ok(doc! { "fsync": 1, "$db": "admin" }).await;
            assert!(server.server.storage.log().last() > last);
            server.shut_down().await;
            stable
        };
        let read_only = |take: bool| {
            move |c: &mut pando_server::Config| {
                c.params.set_at_startup("recoverFromOplogAsStandalone", "true").unwrap();
                c.params
                    .set_at_startup("takeUnstableCheckpointOnShutdown", if take { "1" } else { "0" })
                    .unwrap();
            }
        };
        let server = world.start(read_only(false)).await;
        assert_eq!(server.server.storage.stable(), stable);
        let mut c = server.connect().await;
        assert_eq!(c.all(doc! { "find": "c" }).await.len(), 1);
        let hello = c.ok(doc! { "hello": 1 }).await;
        assert_eq!(hello.get("readOnly"), Some(&Bson::Boolean(true)));
        let reply = c.run(doc! { "insert": "c", "documents": [{ "_id": 2 }] }).await;
        let code = reply
            .get("writeErrors")
            .and_then(Bson::as_array)
            .and_then(|e| e[0].as_doc()?.get("code")?.as_i64());
        assert_eq!(code, Some(20), "{reply:?}");
        assert_eq!(c.err(doc! { "create": "d" }).await.0, 20);
        assert_eq!(c.err(doc! { "drop": "c" }).await.0, 20);
        server.shut_down().await;
        let server = world.start(read_only(true)).await;
        server.shut_down().await;
        let server = world.start(read_only(false)).await;
        let storage = &server.server.storage;
        assert_eq!(storage.recovery_ts(), storage.log().last(), "nothing is left to replay");
        server.shut_down().await;
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 3 }], "writeConcern": { "w": "majority" } }).await;
        assert_eq!(c.all(doc! { "find": "c" }).await.len(), 2);
        server.shut_down().await;
    });
}

#[test]
fn a_member_of_a_running_set_cannot_be_told_to_recover_as_a_standalone_one() {
    run(async {
        let world = World::new();
        let config = pando_server::Config { repl_set: Some("rs".to_owned()), ..Default::default() };
        config.params.set_at_startup("recoverFromOplogAsStandalone", "true").unwrap();
        let e = pando_server::Server::start(world.env(), config).await.err().expect("refused");
        assert_eq!(e.code, pando_base::ErrorCode::BadValue);
    });
}
