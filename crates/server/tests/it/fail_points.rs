//! Fail points that drivers' tests depend on, and what only these tests had shown.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

async fn set(c: &mut Client, name: &str, mode: impl Into<Bson>, data: Document) {
    c.admin(doc! { "configureFailPoint": name, "mode": mode.into(), "data": data }).await;
}

fn codes(d: &Document) -> (Option<i64>, Option<i64>) {
    let error = d.get("writeConcernError").and_then(Bson::as_doc).and_then(|e| e.get("code"));
    (d.get("code").and_then(Bson::as_i64), error.and_then(Bson::as_i64))
}

#[test]
fn a_client_that_has_not_introduced_itself_is_known_by_its_first_hello() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        for name in ["hello", "isMaster", "ismaster"] {
            let data = doc! { "failCommands": ["hello", "ismaster"], "errorCode": 91, "appName": "monitor" };
            set(&mut c, "failCommand", doc! { "times": 1 }, data).await;
            let hello = |app: &str| {
                let mut d = Document::new();
                d.push(name, 1);
                d.push("$db", "admin");
                d.push("client", doc! {
                    "application": { "name": app }, "driver": { "name": "d", "version": "1" }, "os": { "type": "o" }
                });
                d
            };
            server.connect().await.ok(hello("other")).await;
            assert_eq!(server.connect().await.err(hello("monitor")).await.0, 91, "{name}");
            server.connect().await.ok(hello("monitor")).await;
        }
        server.shut_down().await;
    });
}

#[test]
fn the_time_limit_can_be_made_to_pass_at_once_or_never() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }, { "_id": 3 }] }).await;
        let first = c.ok(doc! { "find": "c", "batchSize": 1, "maxTimeMS": 60_000 }).await;
        let id = first.get("cursor").and_then(Bson::as_doc).and_then(|d| d.get("id")).cloned();
        set(&mut c, "maxTimeAlwaysTimeOut", "alwaysOn", doc! {}).await;
        assert_eq!(c.err(doc! { "count": "c", "maxTimeMS": 60_000 }).await.0, 50);
        let mut more = Document::new();
        more.push("getMore", id.expect("a cursor is open"));
        more.push("collection", "c");
        assert_eq!(c.err(more).await.0, 50, "a getMore has what is left of its cursor's time");
        c.ok(doc! { "count": "c" }).await;
        set(&mut c, "maxTimeAlwaysTimeOut", "off", doc! {}).await;
        set(&mut c, "maxTimeNeverTimeOut", "alwaysOn", doc! {}).await;
        c.ok(doc! { "sleep": 1, "millis": 50, "lock": "none", "maxTimeMS": 5, "$db": "admin" }).await;
        server.shut_down().await;
    });
}

#[test]
fn a_refused_insert_keeps_the_groups_before_it() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        // Each document is larger than a group may be.
        let pad = "x".repeat(300 * 1024);
        let data = doc! { "failBeforeCommitExceptionCode": 1, "closeConnection": false };
        set(&mut c, "onPrimaryTransactionalWrite", doc! { "skip": 2 }, data).await;
        let insert = doc! {
            "insert": "c", "ordered": true, "txnNumber": 1i64,
            "documents": [{ "_id": 1, "p": &*pad }, { "_id": 2, "p": &*pad }, { "_id": 3, "p": &*pad }],
            "lsid": { "id": Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] }) }
        };
        assert_eq!(c.err(insert.clone()).await.0, 1);
        set(&mut c, "onPrimaryTransactionalWrite", "off", doc! {}).await;
        assert_eq!(c.ok(doc! { "count": "c" }).await.get("n"), Some(&Bson::Int32(2)));
        c.ok(insert).await;
        assert_eq!(
            c.ok(doc! { "count": "c" }).await.get("n"),
            Some(&Bson::Int32(3)),
            "the retry does the rest"
        );
        server.shut_down().await;
    });
}

#[test]
fn an_aggregation_waits_for_its_write_concern_only_if_it_writes() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let read = doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "writeConcern": { "w": 5 } };
        assert_eq!(codes(&c.ok(read).await), (None, None));
        let write = doc! { "aggregate": "c", "pipeline": [{ "$out": "d" }], "cursor": {}, "writeConcern": { "w": 5 } };
        assert_eq!(codes(&c.run(write).await).1, Some(100));
        server.shut_down().await;
    });
}
