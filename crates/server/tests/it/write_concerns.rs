//! What a write waits for, and what it says when that cannot be had.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{World, run};

fn with(mut command: Document, concern: Document) -> Document {
    command.push("writeConcern", concern);
    command
}

fn concern_error(reply: &Document) -> Option<i64> {
    reply.get("writeConcernError")?.as_doc()?.get("code")?.as_i64()
}

#[test]
fn a_concern_that_cannot_be_met_is_an_error_beside_a_write_that_was_made() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let two = || doc! { "w": 2, "wtimeout": 100 };
        let writes = [
            doc! { "insert": "c", "documents": [{ "_id": 1 }] },
            doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "a": 1 } } }] },
            // A write that changes nothing waits as well.
            doc! { "update": "c", "updates": [{ "q": { "_id": 99 }, "u": { "$set": { "a": 1 } } }] },
            doc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "$set": { "b": 1 } } },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
            doc! { "create": "d" },
            doc! { "aggregate": "c", "pipeline": [{ "$out": "e" }], "cursor": {} },
            doc! { "drop": "d" },
        ];
        for write in writes {
            let shown = format!("{write:?}");
            let reply = c.run(with(write, two())).await;
            assert_eq!(concern_error(&reply), Some(100), "{shown} gave {reply:?}");
        }
        assert_eq!(c.all(doc! { "find": "c" }).await, [doc! { "_id": 1, "a": 1, "b": 1 }]);
        assert_eq!(c.all(doc! { "find": "e" }).await.len(), 1);

        // A failed statement keeps its own error.
        let reply = c.run(with(doc! { "insert": "c", "documents": [{ "_id": 1 }] }, two())).await;
        assert!(reply.contains("writeErrors"));
        assert_eq!(concern_error(&reply), Some(100));
        let named = with(doc! { "insert": "c", "documents": [{ "_id": 2 }] }, doc! { "w": "nope" });
        assert_eq!(concern_error(&c.run(named).await), Some(79));
        server.shut_down().await;
    });
}

#[test]
fn malformed_concerns_are_refused_before_anything_is_written() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let insert = || doc! { "insert": "c", "documents": [{ "_id": 1 }] };
        for (concern, code) in [
            (doc! { "w": 51 }, 9),
            (doc! { "w": (-1) }, 9),
            (doc! { "w": 1, "zz": 1 }, 40415),
            (doc! { "j": "x" }, 14),
        ] {
            assert_eq!(c.err(with(insert(), concern)).await.0, code);
        }
        assert_eq!(c.err(with(doc! { "find": "c" }, doc! { "w": 1 })).await.0, 72);
        assert!(c.all(doc! { "find": "c" }).await.is_empty());
        let data =
            doc! { "failCommands": ["insert"], "writeConcernError": { "code": 91, "errmsg": "later" } };
        c.admin(doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data }).await;
        assert_eq!(concern_error(&c.run(insert()).await), Some(91));
        assert_eq!(c.all(doc! { "find": "c" }).await.len(), 1);
        server.shut_down().await;
    });
}

#[test]
fn an_unacknowledged_write_is_made() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let insert =
            doc! { "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": { "w": 0 }, "$db": "test" };
        c.send(&insert.to_raw(), pando_testserver::MORE_TO_COME).await;
        // The same connection's next command comes after it.
        assert_eq!(c.ok(doc! { "count": "c" }).await.get("n"), Some(&Bson::Int32(1)));
        server.shut_down().await;
    });
}
