//! hello, insert and find, and what a restart and a crash leave.

use pando_bson::{Bson, doc};
use pando_testserver::{World, run};

#[test]
fn documents_survive_a_restart() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let hello = c.ok(doc! { "hello": 1 }).await;
        assert_eq!(hello.get("isWritablePrimary"), Some(&Bson::Boolean(true)));
        assert_eq!(hello.get("setName").and_then(Bson::as_str), Some("rs"));
        let reply = c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "a": "x" }, { "_id": 2 }] }).await;
        assert_eq!(reply.get("n").and_then(Bson::as_i64), Some(2));
        let found = c.all(doc! { "find": "c", "filter": { "_id": 1 } }).await;
        assert_eq!(found, [doc! { "_id": 1, "a": "x" }]);
        server.shut_down().await;

        let server = world.start_set().await;
        let mut c = server.connect().await;
        assert_eq!(c.all(doc! { "find": "c" }).await, [doc! { "_id": 1, "a": "x" }, doc! { "_id": 2 }]);
        assert_eq!(c.ok(doc! { "count": "c" }).await.get("n"), Some(&Bson::Int32(2)));
        server.shut_down().await;
    });
}

#[test]
fn an_acknowledged_majority_write_survives_a_crash() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        for i in 0..50 {
            c.ok(doc! { "insert": "c", "documents": [{ "_id": i }], "writeConcern": { "w": "majority" } })
                .await;
        }
        server.abandon();

        let server = world.start_set().await;
        let mut c = server.connect().await;
        assert_eq!(c.all(doc! { "find": "c" }).await.len(), 50);
        let term = c.admin(doc! { "replSetGetStatus": 1 }).await.get("term").and_then(Bson::as_i64);
        assert_eq!(term, Some(2));
        server.shut_down().await;
    });
}
