//! `applyOps`: entries of an oplog as mongorestore sends them, and what becomes of the data.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, run};

async fn apply(c: &mut Client, entry: Document) -> Document {
    c.ok(doc! { "applyOps": [entry], "$db": "admin" }).await
}

async fn refused(c: &mut Client, entry: Document) -> i32 {
    c.err(doc! { "applyOps": [entry], "$db": "admin" }).await.0
}

async fn all(c: &mut Client) -> Vec<Document> {
    let reply = c.ok(doc! { "find": "c", "sort": { "_id": 1 } }).await;
    let cursor = reply.get("cursor").and_then(Bson::as_doc).unwrap();
    let rows = cursor.get("firstBatch").and_then(Bson::as_array).unwrap();
    rows.iter().map(|r| r.as_doc().unwrap().clone()).collect()
}

#[test]
fn entries_are_carried_out_and_a_second_time_changes_nothing() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let entries = [
            doc! { "op": "c", "ns": "test.$cmd", "o": { "create": "c", "idIndex": { "v": 2, "key": { "_id": 1 }, "name": "_id_" } } },
            doc! { "op": "i", "ns": "test.c", "o": { "_id": 1, "a": 1 } },
            doc! { "op": "i", "ns": "test.c", "o": { "_id": 2, "a": 1 } },
            doc! { "op": "i", "ns": "test.c", "o": { "_id": 3, "a": 1 } },
            doc! { "op": "u", "ns": "test.c", "o2": { "_id": 1 }, "o": { "$v": 2, "diff": { "u": { "a": 2 }, "i": { "b": 3 } } } },
            doc! { "op": "u", "ns": "test.c", "o2": { "_id": 2 }, "o": { "$set": { "a": 5 } } },
            doc! { "op": "u", "ns": "test.c", "o2": { "_id": 4 }, "o": { "_id": 4, "new": true } },
            doc! { "op": "d", "ns": "test.c", "o": { "_id": 3 } },
            doc! { "op": "n", "ns": "", "o": { "msg": "nothing" } },
            doc! { "op": "c", "ns": "test.$cmd", "o": { "drop": "gone" } },
            doc! { "op": "c", "ns": "admin.$cmd", "o": { "applyOps": [{ "op": "i", "ns": "test.c", "o": { "_id": 5 } }] } },
        ];
        let wanted = [
            doc! { "_id": 1, "a": 2, "b": 3 },
            doc! { "_id": 2, "a": 5 },
            doc! { "_id": 4, "new": true },
            doc! { "_id": 5 },
        ];
        for _ in 0..2 {
            for entry in entries.clone() {
                apply(&mut c, entry).await;
            }
            assert_eq!(all(&mut c).await, wanted);
        }
        // The log says what happened, and a secondary would do the same.
        let log = doc! { "count": "oplog.rs", "query": { "ns": "test.c", "op": { "$in": ["i", "u", "d"] } }, "$db": "local" };
        let n = c.ok(log).await.get("n").and_then(Bson::as_i64).unwrap();
        assert!(n >= 8, "{n} entries");
    });
}

#[test]
fn the_first_entry_that_fails_ends_the_command_and_is_told() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "create": "c" }).await;
        let entry = |id: i32, ns: &str| doc! { "op": "i", "ns": ns, "o": { "_id": id } };
        let three = doc! { "applyOps": [entry(1, "test.c"), entry(2, "test.none"), entry(3, "test.c")], "$db": "admin" };
        let reply = c.run(three).await;
        assert_eq!(reply.get("code"), Some(&Bson::Int32(26)));
        assert_eq!(reply.get("applied"), Some(&Bson::Int32(2)));
        let results = vec![Bson::Boolean(true), Bson::Boolean(false)];
        assert_eq!(reply.get("results"), Some(&Bson::Array(results)));
        assert_eq!(all(&mut c).await, [doc! { "_id": 1 }]);
        for (entry, code) in [
            (doc! { "op": "i", "ns": "test.c", "o": { "a": 1 } }, 4),
            (doc! { "op": "x", "ns": "test.c", "o": {} }, 2),
            (doc! { "op": "i", "ns": "test", "o": { "_id": 1 } }, 73),
            (doc! { "op": "i", "ns": "test.c", "o": 1 }, 14),
            (doc! { "op": "i", "ns": "test.c", "o": { "_id": 1 }, "foo": 1 }, 40415),
            (doc! { "op": "i", "ns": "local.oplog.rs", "o": { "_id": 1 } }, 73),
            (doc! { "op": "i", "ns": "test.c", "o": { "_id": [1] } }, 53),
            (doc! { "op": "u", "ns": "test.c", "o2": { "_id": 1 }, "o": { "_id": 2 } }, 66),
            (
                doc! { "op": "u", "ns": "test.c", "o2": { "_id": 1 }, "o": { "$v": 2, "diff": { "u": { "_id": 2 } } } },
                66,
            ),
            (
                doc! { "op": "u", "ns": "test.c", "o2": { "_id": 1 }, "o": { "$v": 2, "diff": { "d": { "_id": false } } } },
                66,
            ),
            (
                doc! { "op": "u", "ns": "test.c", "o2": { "_id": { "$gte": 0 } }, "o": { "$set": { "a": 1 } } },
                52,
            ),
            (doc! { "op": "c", "ns": "a b.$cmd", "o": { "create": "c" } }, 73),
            (doc! { "op": "c", "ns": "test.$cmd", "o": { "createIndexes": "c" } }, 115),
            (doc! { "op": "c", "ns": "test.$cmd", "o": { "shutdown": 1 } }, 2),
            (doc! { "op": "", "ns": "test.c", "o": {} }, 20),
        ] {
            let shown = format!("{entry:?}");
            assert_eq!(refused(&mut c, entry).await, code, "{shown}");
        }
        // What looks like a condition names no document.
        apply(&mut c, doc! { "op": "d", "ns": "test.c", "o": { "_id": { "$gte": 0 } } }).await;
        assert_eq!(all(&mut c).await, [doc! { "_id": 1 }], "what is refused changes nothing");
    });
}

#[test]
fn a_condition_that_is_not_met_keeps_all_entries_out() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "a": 5 }] }).await;
        let entry = doc! { "op": "i", "ns": "test.c", "o": { "_id": 2 } };
        let with = |res: Document| {
            let condition = doc! { "ns": "test.c", "q": { "_id": 1 }, "res": res };
            doc! { "applyOps": [entry.clone()], "preCondition": [condition], "$db": "admin" }
        };
        let refused = c.run(with(doc! { "a": 6 })).await;
        assert_eq!(refused.get("code"), Some(&Bson::Int32(2)), "{refused:?}");
        assert_eq!(refused.get("got"), Some(&doc! { "_id": 1, "a": 5 }.into()));
        assert_eq!(all(&mut c).await.len(), 1);
        c.ok(with(doc! { "a": { "$gt": 4 } })).await;
        assert_eq!(all(&mut c).await.len(), 2);
    });
}

#[test]
fn an_update_of_what_is_not_there_inserts_it_unless_told_otherwise() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        for (id, o, code) in [
            (7, doc! { "_id": 7, "a": 1 }, 218),
            (7, doc! { "$v": 2, "diff": { "u": { "a": 2 } } }, 218),
            (1, doc! { "_id": 1, "a": 1 }, 0),
        ] {
            let entry = doc! { "op": "u", "ns": "test.c", "o": o, "o2": { "_id": id } };
            let reply = c.run(doc! { "applyOps": [entry], "alwaysUpsert": false, "$db": "admin" }).await;
            assert_eq!(reply.get("code").and_then(Bson::as_i64).unwrap_or(0), code, "{reply:?}");
        }
        assert_eq!(all(&mut c).await, [doc! { "_id": 1, "a": 1 }]);
    });
}

#[test]
fn entries_about_views_define_them() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        c.ok(doc! { "insert": "d", "documents": [{ "_id": 2 }, { "_id": 3 }] }).await;
        let view = |on: &str| doc! { "_id": "test.v", "viewOn": on, "pipeline": [] };
        let on_views = |op: &str, o: Document| doc! { "op": op, "ns": "test.system.views", "o": o, "o2": { "_id": "test.v" } };
        let created = doc! { "op": "c", "ns": "test.$cmd", "o": { "create": "system.views" } };
        let count = async |c: &mut Client| c.ok(doc! { "count": "v" }).await.get("n").and_then(Bson::as_i64);
        for _ in 0..2 {
            apply(&mut c, created.clone()).await;
            apply(&mut c, on_views("i", view("c"))).await;
            assert_eq!(count(&mut c).await, Some(1));
            apply(&mut c, on_views("u", view("d"))).await;
            assert_eq!(count(&mut c).await, Some(2));
        }
        for _ in 0..2 {
            apply(&mut c, on_views("d", doc! { "_id": "test.v" })).await;
            assert_eq!(count(&mut c).await, Some(0));
        }
        assert_eq!(refused(&mut c, on_views("i", doc! { "_id": "test.w", "viewOn": 5 })).await, 14);
    });
}

/// What a database's collections are called, and their UUIDs.
async fn named(c: &mut Client) -> Vec<(String, Bson)> {
    let rows = c.all(doc! { "listCollections": 1 }).await;
    let mut names: Vec<_> = rows
        .iter()
        .map(|r| {
            let uuid =
                r.get("info").and_then(Bson::as_doc).unwrap().get("uuid").cloned().unwrap_or(Bson::Null);
            (r.get("name").and_then(Bson::as_str).unwrap().to_owned(), uuid)
        })
        .collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    names
}

#[test]
fn a_collection_that_is_created_with_a_uuid_keeps_it() {
    let uuid = |n: u8| Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![n; 16] });
    let create = |db: &str, name: &str, n: u8| {
        doc! { "op": "c", "ns": format!("{db}.$cmd"), "ui": uuid(n), "o": { "create": name, "idIndex": { "v": 2, "key": { "_id": 1 }, "name": "_id_" } } }
    };
    run(async move {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        // asked of a real server: twice is once
        apply(&mut c, create("test", "a", 1)).await;
        apply(&mut c, create("test", "a", 1)).await;
        assert_eq!(named(&mut c).await, [("a".to_owned(), uuid(1))]);
        // who has the name makes way
        apply(&mut c, create("test", "a", 2)).await;
        let now = named(&mut c).await;
        assert_eq!(now.len(), 2);
        assert_eq!(now[0], ("a".to_owned(), uuid(2)));
        assert!(
            now[1].0.starts_with("tmp") && now[1].0.ends_with(".create") && now[1].1 == uuid(1),
            "{now:?}"
        );
        // who has the UUID gets the name
        apply(&mut c, create("test", "b", 2)).await;
        assert_eq!(named(&mut c).await[0], ("b".to_owned(), uuid(2)));
        // a UUID that is another database's, and none
        assert_eq!(refused(&mut c, create("other", "x", 2)).await, 40_655);
        assert_eq!(refused(&mut c, create("test", "x", 0)).await, 207);
        let view = doc! { "op": "c", "ns": "test.$cmd", "ui": uuid(3), "o": { "create": "v", "viewOn": "b", "pipeline": [] } };
        assert_eq!(refused(&mut c, view).await, 72);
        // an entry about a collection that has another name by now, and about one that is gone
        let drop = |n: u8| doc! { "op": "c", "ns": "test.$cmd", "ui": uuid(n), "o": { "drop": "b" } };
        apply(&mut c, drop(9)).await;
        assert_eq!(named(&mut c).await.len(), 2);
        apply(&mut c, drop(1)).await;
        assert_eq!(named(&mut c).await, [("b".to_owned(), uuid(2))]);
        // a time series' buckets have it
        let series = doc! { "op": "c", "ns": "test.$cmd", "ui": uuid(5), "o": { "create": "t", "timeseries": { "timeField": "t" } } };
        apply(&mut c, series).await;
        assert!(named(&mut c).await.contains(&("system.buckets.t".to_owned(), uuid(5))));
    });
}
