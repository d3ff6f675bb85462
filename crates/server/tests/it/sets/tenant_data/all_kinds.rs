//! All that a tenant's clients do while its data is copied.

use super::*;
use pando_testserver::{JoinHandle, run, spawn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// One of everything.
pub(super) async fn define(c: &mut Client) {
    let on = |mut d: Document| {
        d.push("$db", "a_db");
        d
    };
    c.ok(on(doc! { "create": "capped", "capped": true, "size": 8192, "max": 20 })).await;
    c.ok(on(doc! { "create": "clustered", "clusteredIndex": { "key": { "_id": 1 }, "unique": true } })).await;
    c.ok(on(doc! { "create": "french", "collation": { "locale": "fr", "strength": 2 } })).await;
    c.ok(on(doc! { "create": "series", "timeseries": { "timeField": "t", "metaField": "m" } })).await;
    c.ok(on(doc! { "create": "images", "changeStreamPreAndPostImages": { "enabled": true } })).await;
    c.ok(on(doc! { "create": "view", "viewOn": "many", "pipeline": [{ "$match": { "n": 1 } }] })).await;
    c.ok(on(doc! { "create": "checked", "validator": { "n": { "$exists": true } } })).await;
    let documents: Vec<Bson> =
        (0..1500).map(|i| doc! { "_id": i, "n": i % 7, "l": [i, i + 1] }.into()).collect();
    let mut many = doc! { "insert": "many" };
    many.push("documents", documents);
    c.ok(on(many)).await;
    c.ok(on(doc! { "createIndexes": "many", "indexes": [
        { "key": { "n": 1, "l": 1 }, "name": "n_l" },
        { "key": { "w": "hashed" }, "name": "w_hashed" },
        { "key": { "s": 1 }, "name": "s", "unique": true, "sparse": true },
        { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 3600 },
    ] }))
    .await;
    c.ok(on(doc! { "createIndexes": "french", "indexes": [{ "key": { "x": 1 }, "name": "x", "collation": { "locale": "simple" } }] })).await;
    for i in 0..30 {
        turn(c, i).await;
    }
}

/// Writes of every form, each of which succeeds whatever came before.
pub(super) async fn turn(c: &mut Client, i: i32) {
    let at = |coll: &str, mut d: Document| {
        let _ = coll;
        d.push("$db", "a_db");
        d
    };
    let t = Bson::DateTime(1_700_000_000_000 + i64::from(i) * 1000);
    c.ok(at("", doc! { "insert": "capped", "documents": [{ "i": i, "pad": "x".repeat(300) }] })).await;
    c.ok(at("", doc! { "insert": "clustered", "documents": [{ "_id": format!("k{i}"), "i": i }] })).await;
    c.ok(at("", doc! { "insert": "french", "documents": [{ "_id": format!("é{i}"), "x": "É" }] })).await;
    c.ok(at("", doc! { "insert": "series", "documents": [{ "t": t, "m": i % 3, "v": i }] })).await;
    c.ok(at("", doc! { "insert": "checked", "documents": [{ "n": i }] })).await;
    let update = |q: Document, u: Bson, upsert: bool, multi: bool| {
        let mut one = doc! { "q": q };
        one.push("u", u);
        one.push("upsert", upsert);
        one.push("multi", multi);
        let mut d = doc! { "update": "many" };
        d.push("updates", vec![Bson::from(one)]);
        d
    };
    for d in [
        update(doc! { "_id": i }, doc! { "$inc": { "n": 1 }, "$set": { "w": i } }.into(), false, false),
        update(doc! { "_id": 10_000 + i }, doc! { "whole": i, "s": i }.into(), true, false),
        update(
            doc! { "_id": i },
            vec![Bson::from(doc! { "$set": { "p": { "$add": ["$n", 1] } } })].into(),
            false,
            false,
        ),
        update(doc! { "n": i % 7 }, doc! { "$push": { "l": i } }.into(), false, true),
        update(doc! { "_id": 10_000 + i }, doc! { "replaced": i }.into(), false, false),
    ] {
        c.ok(at("", d)).await;
    }
    c.ok(at("", doc! { "delete": "many", "deletes": [{ "q": { "_id": 700 + i }, "limit": 1 }] })).await;
    c.ok(at(
        "",
        doc! { "delete": "clustered", "deletes": [{ "q": { "_id": format!("k{}", i - 5) }, "limit": 1 }] },
    ))
    .await;
    c.ok(at("", doc! { "update": "images", "updates": [{ "q": { "_id": i % 4 }, "u": { "$inc": { "n": 1 } }, "upsert": true }] })).await;
    let modify = doc! { "findAndModify": "many", "query": { "_id": i }, "update": { "$inc": { "m": 1 } }, "new": true };
    c.ok(of_session(at("", modify), 50, i64::from(i) + 1)).await;
    c.ok(of_session(
        at("", doc! { "insert": "many", "documents": [{ "_id": 20_000 + i }, { "_id": 30_000 + i }] }),
        51,
        i64::from(i) + 1,
    ))
    .await;
    transaction(c, i).await;
    if i % 10 == 3 {
        definitions(c, i).await;
    }
}

/// One that writes to the tenant, to another one, and makes a collection.
async fn transaction(c: &mut Client, i: i32) {
    let number = i64::from(i) + 1;
    let on = |db: &str, mut d: Document, start| {
        d.push("$db", db);
        within(d, 52, number, start)
    };
    c.ok(on("a_db", doc! { "insert": "many", "documents": [{ "_id": 40_000 + i }] }, true)).await;
    c.ok(on("b_db", doc! { "insert": "many", "documents": [{ "_id": 40_000 + i }] }, false)).await;
    c.ok(on(
        "a_db",
        doc! { "update": "many", "updates": [{ "q": { "_id": 40_000 + i }, "u": { "$set": { "t": 1 } } }] },
        false,
    ))
    .await;
    c.ok(on("a_other", doc! { "insert": format!("made{}", i % 5), "documents": [{ "_id": i }] }, false))
        .await;
    if i % 5 == 0 {
        c.ok(on(
            "a_db",
            doc! { "delete": "many", "deletes": [{ "q": { "_id": 40_000 + i }, "limit": 1 }] },
            false,
        ))
        .await;
    }
    c.ok(commit(52, number)).await;
}

/// Definitions come and go.
async fn definitions(c: &mut Client, i: i32) {
    let on = |mut d: Document| {
        d.push("$db", "a_db");
        d
    };
    let (tmp, name) = (format!("tmp{i}"), format!("kept{}", i % 20));
    c.ok(on(doc! { "insert": &*tmp, "documents": [{ "_id": 1 }, { "_id": 2 }] })).await;
    c.ok(on(doc! { "createIndexes": &*tmp, "indexes": [{ "key": { "q": 1 }, "name": "q" }] })).await;
    let rename =
        doc! { "renameCollection": format!("a_db.{tmp}"), "to": format!("a_db.{name}"), "dropTarget": true };
    c.admin(rename).await;
    let across = doc! { "renameCollection": format!("a_db.{name}"), "to": format!("a_third.{name}"), "dropTarget": true };
    c.admin(across).await;
    c.ok(on(doc! { "insert": "gone", "documents": [{ "_id": i }] })).await;
    c.ok(on(doc! { "drop": "gone" })).await;
    c.ok(on(doc! { "create": format!("view{i}"), "viewOn": "many", "pipeline": [] })).await;
    c.ok(on(doc! { "collMod": format!("view{i}"), "viewOn": "capped", "pipeline": [] })).await;
    c.ok(on(doc! { "collMod": "many", "index": { "name": "at", "expireAfterSeconds": 3600 + i } })).await;
    c.ok(on(
        doc! { "collMod": "checked", "validationLevel": if i % 20 == 3 { "moderate" } else { "strict" } },
    ))
    .await;
    if i % 20 == 13 {
        c.ok(on(doc! { "drop": format!("view{}", i - 10) })).await;
        c.ok(on(doc! { "dropIndexes": "many", "index": "w_hashed" })).await;
    } else {
        c.ok(on(doc! { "createIndexes": "empty", "indexes": [{ "key": { "e": 1 }, "name": "e" }] })).await;
        c.ok(on(
            doc! { "createIndexes": "many", "indexes": [{ "key": { "w": "hashed" }, "name": "w_hashed" }] },
        ))
        .await;
    }
    c.ok(on(
        doc! { "aggregate": "many", "pipeline": [{ "$match": { "n": 2 } }, { "$out": "out" }], "cursor": {} },
    ))
    .await;
    c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "a_brief" }).await;
    c.ok(doc! { "dropDatabase": 1, "$db": "a_brief" }).await;
}

/// Turns until it is told to stop; returns the next one.
fn writer(mut c: Client, from: i32, stop: Arc<AtomicBool>) -> JoinHandle<i32> {
    spawn(async move {
        let mut i = from;
        while !stop.load(SeqCst) {
            turn(&mut c, i).await;
            i += 1;
        }
        i
    })
}

#[test]
fn everything_of_a_tenant_is_there_and_nothing_of_others() {
    run(async {
        let pair = Pair::of(1, 3).await;
        let mut c = pair.from().await;
        define(&mut c).await;
        for db in ["ab_x", "aa", "b_db", "A"] {
            c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": db }).await;
        }
        let mut to = pair.to().await;
        for db in ["ab_own", "a_left", "a_db"] {
            to.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": majority(), "$db": db })
                .await;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let writes = writer(pair.from().await, 30, stop.clone());
        pause(200).await;
        let start = pair.copy().await;
        let mut at = start;
        for _ in 0..20 {
            at = time(&to.ok(pair.follow(at)).await, "at");
            pause(50).await;
        }
        stop.store(true, SeqCst);
        let turns = writes.await.expect("it writes");
        assert!(turns > 35, "{turns}");
        pair.catch_up(at).await;
        pair.same().await;
        pair.followers_have_the_same().await;
        let all: Vec<String> =
            databases(&mut to).await.into_iter().filter(|db| !db.starts_with("a_")).collect();
        assert_eq!(all, ["ab_own", "admin", "config", "local", "z_db"]);
        // Members that start again know it as it was.
        let mut pair = pair;
        let p = pair.recipient.primary().await;
        pair.recipient.kill(p).await;
        pair.recipient.restart(p).await;
        pair.recipient.settled().await;
        pair.same().await;
        pair.followers_have_the_same().await;
        pair.done().await;
    });
}

#[test]
fn an_index_that_is_built_while_the_log_is_followed_is_built_here() {
    run(async {
        let pair = Pair::of(1, 1).await;
        let mut c = pair.from().await;
        c.ok(
            doc! { "insert": "c", "documents": [{ "_id": 1, "x": 1 }, { "_id": 2, "x": 2 }], "$db": "a_db" },
        )
        .await;
        let start = pair.copy().await;
        let index = doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x", "unique": true }], "$db": "a_db" };
        c.ok(index).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 3, "x": 3 }], "$db": "a_db" }).await;
        pair.catch_up(start).await;
        pair.same().await;
        pair.done().await;
    });
}

#[test]
fn what_expires_on_the_donor_goes_here() {
    run(async {
        let pair = Pair::of(1, 1).await;
        let mut c = pair.from().await;
        let index = doc! { "createIndexes": "c", "indexes": [{ "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 1 }], "$db": "a_db" };
        c.ok(index).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "at": Bson::DateTime(1000) }, { "_id": 2 }], "$db": "a_db" }).await;
        let start = pair.copy().await;
        c.admin(doc! { "setParameter": 1, "ttlMonitorEnabled": true }).await;
        while c.all(doc! { "find": "c", "$db": "a_db" }).await.len() > 1 {
            pause(20).await;
        }
        pair.catch_up(start).await;
        assert_eq!(pair.to().await.all(doc! { "find": "c", "$db": "a_db" }).await.len(), 1);
        pair.same().await;
        pair.done().await;
    });
}

#[test]
fn what_is_here_is_what_was_there_or_nothing_is_followed() {
    run(async {
        let pair = Pair::of(1, 1).await;
        let mut c = pair.from().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "a_db" }).await;
        let start = pair.copy().await;
        let mut to = pair.to().await;
        to.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }], "$db": "a_db" }).await;
        to.ok(doc! { "insert": "c", "documents": [{ "_id": 3 }], "$db": "a_db" }).await;
        c.ok(doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "x": 1 } } }], "$db": "a_db" }).await;
        pair.now().await;
        assert_eq!(code(&to.run(pair.follow(start)).await), 96);
        to.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "a_db" }).await;
        to.ok(pair.follow(start)).await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 3 }], "$db": "a_db" }).await;
        pair.now().await;
        assert_eq!(code(&to.run(pair.follow(start)).await), 11000);
        // And a copy over what is there.
        assert_ne!(code(&to.run(pair.step("copy")).await), 0);
        let start = pair.copy().await;
        pair.catch_up(start).await;
        pair.same().await;
        pair.done().await;
    });
}

#[test]
fn whoever_watches_the_recipient_sees_nothing_of_it() {
    run(async {
        let pair = Pair::of(1, 1).await;
        define(&mut pair.from().await).await;
        let mut to = pair.to().await;
        let all = doc! { "allChangesForCluster": true, "showExpandedEvents": true };
        let watch =
            doc! { "aggregate": 1, "pipeline": [{ "$changeStream": all }], "cursor": {}, "$db": "admin" };
        let reply = to.ok(watch).await;
        let id = number(&reply, "cursor.id");
        let start = pair.copy().await;
        for i in 30..36 {
            turn(&mut pair.from().await, i).await;
        }
        pair.catch_up(start).await;
        pair.same().await;
        to.ok(pair.step("clear")).await;
        to.ok(doc! { "insert": "c", "documents": [{ "_id": "seen" }], "writeConcern": majority(), "$db": "z_db" }).await;
        let mut seen = Vec::new();
        while seen.is_empty() {
            let more =
                doc! { "getMore": id, "collection": "$cmd.aggregate", "maxTimeMS": 1000, "$db": "admin" };
            let reply = to.ok(more).await;
            let batch = at(&reply, "cursor.nextBatch").and_then(Bson::as_array).expect("a batch");
            seen.extend(batch.iter().filter_map(|e| e.as_doc().cloned()));
        }
        let db = at(&seen[0], "ns.db").and_then(Bson::as_str);
        assert_eq!(db, Some("z_db"), "{seen:?}");
        // Whoever asks whether a write may be knows the copier by this.
        let marked = |d: &Document| is(d, "fromMigrate");
        for e in to.all(doc! { "find": "oplog.rs", "$db": "local" }).await {
            let ns = e.get("ns").and_then(Bson::as_str).unwrap_or_default().to_owned();
            let ops = at(&e, "o.applyOps").and_then(Bson::as_array).map(<[Bson]>::to_vec).unwrap_or_default();
            assert!(!ns.starts_with("a_") || marked(&e), "{e:?}");
            for op in ops.iter().filter_map(|op| op.as_doc()) {
                let ns = op.get("ns").and_then(Bson::as_str).unwrap_or_default();
                assert!(ns.starts_with("config.") || marked(op), "{op:?}");
            }
        }
        pair.done().await;
    });
}
