//! Transactions that began before an index was built: they read without it and write none of its keys.

use pando_bson::{Binary, Bson, Document, doc};
use pando_testserver::{Client, World, run};

fn session(n: u8) -> Bson {
    Bson::Document(doc! { "id": Bson::Binary(Binary { subtype: 4, bytes: vec![n; 16] }) })
}
/// A statement of a transaction; the first when `start`.
fn within(mut command: Document, session_no: u8, number: i64, start: bool) -> Document {
    command.push("lsid", session(session_no));
    command.push("txnNumber", number);
    command.push("autocommit", false);
    if start {
        command.push("startTransaction", true);
    }
    command
}
fn end(command: &str, session_no: u8, number: i64) -> Document {
    let mut d = Document::new();
    d.push(command, 1);
    d.push("$db", "admin");
    within(d, session_no, number, false)
}
fn code(reply: &Document) -> i64 {
    reply.get("code").and_then(Bson::as_i64).unwrap_or(0)
}
fn labels(reply: &Document) -> Vec<&str> {
    reply
        .get("errorLabels")
        .and_then(Bson::as_array)
        .map_or(Vec::new(), |l| l.iter().filter_map(Bson::as_str).collect())
}

/// A transaction that has begun before an index on `y` was built on `c`.
async fn older_than_an_index(a: &mut Client, b: &mut Client, number: i64, index: Document) {
    b.run(doc! { "drop": "c" }).await;
    b.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x_1" }] }).await;
    for i in 1..=3 {
        b.ok(doc! { "insert": "c", "documents": [{ "_id": i, "x": i, "y": i }] }).await;
    }
    b.ok(doc! { "insert": "other", "documents": [{ "_id": number, "x": 1 }] }).await;
    let mut first = doc! { "find": "other" };
    first.push("readConcern", doc! { "level": ["local", "majority", "snapshot"][number as usize % 3] });
    a.ok(within(first, 1, number, true)).await;
    let mut build = doc! { "createIndexes": "c" };
    build.push("indexes", Bson::Array(vec![Bson::Document(index)]));
    b.ok(build).await;
    b.ok(doc! { "insert": "c", "documents": [{ "_id": 4, "x": 4, "y": 4 }] }).await;
}

#[test]
fn a_transaction_reads_a_collection_without_an_index_that_is_younger() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let (mut a, mut b) = (server.connect().await, server.connect().await);
        for number in 1..=3 {
            let y = doc! { "key": { "y": 1 }, "name": "y_1" };
            older_than_an_index(&mut a, &mut b, number, y).await;
            let n = |reply: &Document| {
                let batch = reply.get("cursor").and_then(|c| c.as_doc()?.get("firstBatch")?.as_array());
                batch.unwrap().len()
            };
            let read =
                a.ok(within(doc! { "find": "c", "filter": { "y": { "$gte": 3 } } }, 1, number, false)).await;
            assert_eq!(n(&read), 1, "4 came later");
            let lookup = doc! { "from": "c", "localField": "x", "foreignField": "y", "as": "found" };
            let joined = doc! { "aggregate": "c", "cursor": {},
            "pipeline": [{ "$match": { "y": 2 } }, { "$lookup": lookup }, { "$unwind": "$found" }] };
            assert_eq!(n(&a.ok(within(joined, 1, number, false)).await), 1);
            let values = a.ok(within(doc! { "distinct": "c", "key": "y" }, 1, number, false)).await;
            assert_eq!(values.get("values").and_then(Bson::as_array).map(<[Bson]>::len), Some(3));
            let hinted = doc! { "find": "c", "filter": { "y": 3 }, "hint": "y_1" };
            assert_eq!(code(&a.run(within(hinted, 1, number, false)).await), 2);
        }
        // A collection that is younger itself is refused still.
        a.ok(within(doc! { "find": "other" }, 1, 4, true)).await;
        b.ok(doc! { "create": "younger" }).await;
        assert_eq!(code(&a.run(within(doc! { "find": "younger" }, 1, 4, false)).await), 246);
        server.shut_down().await;
    });
}

#[test]
fn a_transaction_writes_nothing_to_an_index_that_is_younger() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let (mut a, mut b) = (server.connect().await, server.connect().await);
        let y = || doc! { "key": { "y": 1 }, "name": "y_1" };
        let some = || doc! { "key": { "y": 1 }, "name": "y_1", "partialFilterExpression": { "some": true } };
        let unique = || doc! { "key": { "y": 1 }, "name": "y_1", "unique": true };
        let update = |q: Document, u: Document| doc! { "update": "c", "updates": [{ "q": q, "u": u }] };
        let delete = |id: i32| doc! { "delete": "c", "deletes": [{ "q": { "_id": id }, "limit": 1 }] };
        let put = || doc! { "insert": "c", "documents": [{ "_id": 9, "x": 9, "y": 3 }] };
        let modify = |how: Document| {
            let mut d = doc! { "findAndModify": "c", "query": { "_id": 3 } };
            how.iter().for_each(|(name, v)| d.push(name, v.clone()));
            d
        };
        let told = [
            (put(), y(), 112),
            (put(), unique(), 112),
            (put(), some(), 0),
            (delete(3), y(), 112),
            (delete(7), y(), 0),
            (modify(doc! { "remove": true }), y(), 112),
            (update(doc! { "_id": 3 }, doc! { "$set": { "y": 7 } }), y(), 246),
            (update(doc! { "_id": 3 }, doc! { "x": 7 }), y(), 246),
            (update(doc! { "y": 3 }, doc! { "$set": { "y": 3 } }), y(), 0),
            (modify(doc! { "update": { "$set": { "y": 7 } } }), y(), 246),
            (update(doc! { "y": 3 }, doc! { "$set": { "x": 7 } }), y(), 0),
            // The row that would have to tell of the first array is younger, too.
            (update(doc! { "y": 3 }, doc! { "$set": { "x": [7, 8] } }), y(), 112),
        ];
        for (number, (write, index, expected)) in (1..).zip(told) {
            older_than_an_index(&mut a, &mut b, number, index).await;
            let reply = a.run(within(write, 1, number, false)).await;
            assert_eq!(code(&reply), expected, "{number}: {reply:?}");
            if expected == 0 {
                a.ok(end("commitTransaction", 1, number)).await;
            } else {
                assert_eq!(labels(&reply), ["TransientTransactionError"]);
            }
            let state = b.ok(doc! { "validate": "c", "full": true }).await;
            assert_eq!(state.get("valid"), Some(&Bson::Boolean(true)), "{number}: {state:?}");
        }
        server.shut_down().await;
    });
}
