//! Well-formed requests that ask for far too much end with their operation, and hold nobody up meanwhile. What each takes is measured
//! by `tests/badinput/heavy.py`.

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, pause, run, spawn};

fn array(items: Vec<Bson>) -> Bson {
    Bson::Array(items)
}

/// `depth` loops of `n` turns each, one in the other.
fn loops(depth: usize, n: i32) -> Bson {
    let inner = if depth == 1 { Bson::from("$_id") } else { loops(depth - 1, n) };
    let range = doc! { "$range": array(vec![Bson::from(0), Bson::from(n)]) };
    Bson::Document(doc! { "$map": { "input": range, "in": inner } })
}

fn long_sum() -> Document {
    doc! { "$sum": { "$map": { "input": { "$range": array(vec![Bson::from(0), Bson::from(2000)]) }, "in": { "$size": loops(3, 2000) } } } }
}

fn project(e: Document) -> Document {
    let stage = doc! { "$project": { "x": e } };
    doc! { "aggregate": "c", "pipeline": array(vec![Bson::Document(stage)]), "cursor": {} }
}

/// Put together with itself again and again.
fn doubling(op: &str, start: Bson) -> Document {
    let mut twice = Document::default();
    twice.push(op, array(vec![Bson::from("$$value"), Bson::from("$$value")]));
    let range = doc! { "$range": array(vec![Bson::from(0), Bson::from(60)]) };
    doc! { "$type": { "$reduce": { "input": range, "initialValue": start, "in": twice } } }
}

async fn one(c: &mut Client) {
    c.ok(
        doc! { "insert": "c", "documents": array(vec![Bson::Document(doc! { "_id": 1, "s": "a".repeat(100_000) })]) },
    )
    .await;
}

#[test]
fn long_expressions_end_with_their_time_and_when_they_are_killed() {
    run(async {
        let world = World::new();
        let server = world.start(|_| {}).await;
        let mut c = server.connect().await;
        one(&mut c).await;
        let within = |mut command: Document| {
            command.push("maxTimeMS", 50);
            command
        };
        assert_eq!(c.err(within(project(long_sum()))).await.0, 50);
        let condition = doc! { "$expr": { "$gt": array(vec![Bson::Document(long_sum()), Bson::from(0)]) } };
        assert_eq!(c.err(within(doc! { "find": "c", "filter": condition.clone() })).await.0, 50);
        let change = doc! { "q": condition, "u": { "$set": { "a": 1 } } };
        let changed =
            c.run(within(doc! { "update": "c", "updates": array(vec![Bson::Document(change)]) })).await;
        let text = format!("{changed:?}");
        assert!(text.contains("50") && text.contains("time limit"), "{text}");
        let mut other = server.connect().await;
        let endless = spawn(async move { other.err(project(long_sum())).await.0 });
        pause(100).await;
        let ops = doc! { "$currentOp": {} };
        let mine = doc! { "$match": { "ns": "test.c", "command.aggregate": "c" } };
        let list = array(vec![Bson::Document(ops), Bson::Document(mine)]);
        let running = c.all(doc! { "aggregate": 1, "pipeline": list, "cursor": {}, "$db": "admin" }).await;
        let id = running.first().and_then(|d| d.get("opid")).cloned().expect("the long one is running");
        c.ok(doc! { "killOp": 1, "op": id, "$db": "admin" }).await;
        assert_eq!(endless.await.expect("a reply"), 11601);
        server.shut_down().await;
    });
}

#[test]
fn values_that_grow_without_bound_are_given_up() {
    run(async {
        let world = World::new();
        let server = world.start(|_| {}).await;
        let mut c = server.connect().await;
        one(&mut c).await;
        assert_eq!(c.err(project(doubling("$concat", Bson::from("0123456789")))).await.0, 146);
        assert_eq!(
            c.err(project(doubling("$concatArrays", array(vec![Bson::from("0123456789".repeat(10_000))]))))
                .await
                .0,
            146
        );
        let two = doc! { "$concat": array(vec![Bson::from("$s"), Bson::from("$s")]) };
        let twice = doc! { "$replaceAll": { "input": "$$value", "find": "$s", "replacement": two } };
        let range = doc! { "$range": array(vec![Bson::from(0), Bson::from(60)]) };
        let grown = doc! { "$reduce": { "input": range, "initialValue": "$s", "in": twice } };
        assert_eq!(c.err(project(doc! { "$strLenBytes": grown })).await.0, 146);
        server.shut_down().await;
    });
}
