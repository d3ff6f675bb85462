//! JavaScript in queries: refused unless allowed, and never in the way of others.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, World, pause, run, spawn};
use std::time::{Duration, Instant};

async fn docs(c: &mut Client) {
    let docs = (0..10).map(|i| Bson::Document(doc! { "_id": i, "k": i % 3 })).collect();
    c.ok(doc! { "insert": "c", "documents": Bson::Array(docs) }).await;
}

fn function(body: &str) -> Document {
    let call = doc! { "body": body, "args": Bson::Array(vec![Bson::from("$k")]), "lang": "js" };
    let stage = doc! { "$project": { "r": { "$function": call } } };
    doc! { "aggregate": "c", "pipeline": Bson::Array(vec![Bson::Document(stage)]), "cursor": {} }
}

fn find_where(code: &str) -> Document {
    doc! { "find": "c", "filter": { "$where": code } }
}

fn allow_scripts(c: &mut pando_server::Config) {
    c.params.set_at_startup("javascriptEnabled", "true").expect("a parameter");
}

#[test]
fn scripts_are_refused_unless_the_server_was_told_to_run_them() {
    run(async {
        let world = World::new();
        let server = world.start(|_| {}).await;
        let mut c = server.connect().await;
        docs(&mut c).await;
        assert_eq!(c.err(find_where("true")).await.0, 6_108_304);
        assert_eq!(c.err(function("function(k) { return k }")).await.0, 31264);
        let off = doc! { "setParameter": 1, "javascriptEnabled": true, "$db": "admin" };
        // Told without a code.
        let (code, text) = c.err(off).await;
        assert_eq!((code, &*text), (0, "not allowed to change [javascriptEnabled] at runtime"));
        server.shut_down().await;
    });
}

#[test]
fn scripts_filter_compute_and_group() {
    run(async {
        let world = World::new();
        let server = world.start(allow_scripts).await;
        let mut c = server.connect().await;
        docs(&mut c).await;
        assert_eq!(c.all(find_where("this.k == 1 && obj._id > 1")).await.len(), 2);
        let rows = c.all(function("function(k) { return k * 2 }")).await;
        let sum: f64 = rows.iter().filter_map(|d| d.get("r").and_then(Bson::as_f64)).sum();
        assert_eq!(sum, 18.0);
        let accumulator = doc! {
            "init": "function() { return {n: 0, s: 0} }",
            "accumulate": "function(state, v) { state.n += 1; state.s += v; return state }",
            "accumulateArgs": Bson::Array(vec![Bson::from("$_id")]),
            "merge": "function(a, b) { return {n: a.n + b.n, s: a.s + b.s} }",
            "finalize": "function(state) { return state.s / state.n }",
            "lang": "js",
        };
        let group = doc! { "$group": { "_id": "$k", "mean": { "$accumulator": accumulator } } };
        let sort = doc! { "$sort": { "_id": 1 } };
        let pipeline = Bson::Array(vec![Bson::Document(group), Bson::Document(sort)]);
        let rows = c.all(doc! { "aggregate": "c", "pipeline": pipeline, "cursor": {} }).await;
        let means: Vec<f64> = rows.iter().filter_map(|d| d.get("mean").and_then(Bson::as_f64)).collect();
        assert_eq!(means, [4.5, 4.0, 5.0]);
        // A cursor's next batch has its own end of time.
        let mut first = find_where("this._id >= 0");
        first.push("batchSize", 2);
        assert_eq!(c.all(first).await.len(), 10);
        let validator = doc! { "$expr": { "$function": { "body": "function() { return true }",
        "args": Bson::Array(Vec::new()), "lang": "js" } } };
        assert_eq!(c.err(doc! { "create": "v", "validator": validator }).await.0, 4_660_800);
        server.shut_down().await;
    });
}

/// As many endless scripts as there are workers, and more: the server goes on, and each can be ended.
#[test]
fn endless_scripts_hold_up_nobody_and_can_be_killed() {
    run(async {
        let world = World::new();
        let server = world.start(allow_scripts).await;
        let mut c = server.connect().await;
        docs(&mut c).await;
        let mut endless = Vec::new();
        for _ in 0..8 {
            let mut other = server.connect().await;
            endless.push(spawn(async move { other.err(find_where("while (true) {} return 1")).await.0 }));
        }
        pause(100).await;
        let began = Instant::now();
        let ops = c.ok(doc! { "currentOp": 1, "$db": "admin" }).await;
        let Some(Bson::Array(ops)) = ops.get("inprog") else { panic!("{ops:?}") };
        let ids: Vec<i64> = ops
            .iter()
            .filter_map(Bson::as_doc)
            .filter(|op| op.get("op").and_then(Bson::as_str) == Some("query"))
            .filter_map(|op| op.get("opid").and_then(Bson::as_i64))
            .collect();
        assert_eq!(ids.len(), 8, "{ops:?}");
        for id in ids {
            c.ok(doc! { "killOp": 1, "op": id, "$db": "admin" }).await;
        }
        for task in endless {
            assert_eq!(task.await.expect("it ends"), 11601);
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        let mut limited = find_where("while (true) {} return 1");
        limited.push("maxTimeMS", 100);
        assert_eq!(c.err(limited).await.0, 50);
        server.shut_down().await;
    });
}

/// The sum of `_id` by `k`, and what `more` adds or replaces.
fn map_reduce(more: Document) -> Document {
    let mut command = doc! {
        "mapReduce": "c",
        "map": "function() { emit(this.k, this._id) }",
        "reduce": "function(key, values) { return Array.sum(values) }",
        "out": { "inline": 1 },
    };
    more.into_fields().into_iter().for_each(|(name, v)| command.set(name, v));
    command
}
async fn reduced(c: &mut Client, more: Document) -> Vec<(f64, f64)> {
    let reply = c.ok(map_reduce(more)).await;
    let results = reply.get("results").and_then(Bson::as_array).expect("results").to_vec();
    pairs(results.iter().filter_map(Bson::as_doc))
}
fn pairs<'a>(docs: impl Iterator<Item = &'a Document>) -> Vec<(f64, f64)> {
    let number = |d: &Document, name: &str| d.get(name).and_then(Bson::as_f64).unwrap();
    let mut all: Vec<_> = docs.map(|d| (number(d, "_id"), number(d, "value"))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

#[test]
fn map_reduce_gives_each_keys_values_as_one() {
    run(async {
        let world = World::new();
        let server = world.start(allow_scripts).await;
        let mut c = server.connect().await;
        docs(&mut c).await;
        assert_eq!(reduced(&mut c, doc! {}).await, [(0.0, 18.0), (1.0, 12.0), (2.0, 15.0)]);
        let scoped = doc! {
            "map": "function() { emit(this.k, this._id * factor) }",
            "scope": { "factor": 2 },
            "finalize": "function(key, value) { return value + factor }",
            "query": { "_id": { "$gt": 2 } }, "sort": { "_id": 1 }, "limit": 3,
        };
        // 3, 4 and 5, each the only value of its key.
        assert_eq!(reduced(&mut c, scoped).await, [(0.0, 8.0), (1.0, 10.0), (2.0, 12.0)]);
        // A single value goes through `reduce` too, as in a real server.
        let told =
            doc! { "reduce": "function(key, values) { return 100 + values.length }", "query": { "_id": 3 } };
        assert_eq!(reduced(&mut c, told).await, [(0.0, 101.0)]);
        // More values than are reduced at once.
        let many = "function() { for (var i = 0; i < 1000; i++) emit(this.k, 1) }";
        assert_eq!(
            reduced(&mut c, doc! { "map": many }).await,
            [(0.0, 4000.0), (1.0, 3000.0), (2.0, 3000.0)]
        );
        assert_eq!(c.err(map_reduce(doc! { "map": "function() { emit(1) }" })).await.0, 31220);
        assert_eq!(c.err(map_reduce(doc! { "limit": 0 })).await.0, 15958);
        assert_eq!(c.err(map_reduce(doc! { "out": { "inline": 1, "replace": "r" } })).await.0, 72);
        let endless = map_reduce(doc! { "map": "function() { while (true) {} }", "maxTimeMS": 100 });
        assert_eq!(c.err(endless).await.0, 50);
        server.shut_down().await;
    });
}

#[test]
fn map_reduce_replaces_merges_into_and_reduces_into_a_collection() {
    run(async {
        let world = World::new();
        let server = world.start(allow_scripts).await;
        let mut c = server.connect().await;
        docs(&mut c).await;
        let found = async |c: &mut Client| pairs(c.all(doc! { "find": "r" }).await.iter());
        let reply = c.ok(map_reduce(doc! { "out": "r" })).await;
        assert_eq!(reply.get("result"), Some(&Bson::from("r")));
        assert_eq!(found(&mut c).await, [(0.0, 18.0), (1.0, 12.0), (2.0, 15.0)]);
        let of_zero = |out: Document| map_reduce(doc! { "query": { "k": 0 }, "out": out });
        c.ok(of_zero(doc! { "reduce": "r" })).await;
        assert_eq!(found(&mut c).await, [(0.0, 36.0), (1.0, 12.0), (2.0, 15.0)]);
        c.ok(of_zero(doc! { "merge": "r" })).await;
        assert_eq!(found(&mut c).await, [(0.0, 18.0), (1.0, 12.0), (2.0, 15.0)]);
        c.ok(of_zero(doc! { "replace": "r" })).await;
        assert_eq!(found(&mut c).await, [(0.0, 18.0)]);
        c.ok(doc! { "create": "v", "viewOn": "c" }).await;
        assert_eq!(c.err(map_reduce(doc! { "mapReduce": "v" })).await.0, 166);
        server.shut_down().await;
    });
}
