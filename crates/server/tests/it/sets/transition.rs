//! A change of primary as operations feel it.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Set, is, pause, run, spawn};

async fn transition(set: &Set, i: usize) -> (String, i64, i64) {
    let status = set.connect(i).await.admin(doc! { "serverStatus": 1 }).await;
    let of = |field: &str| format!("metrics.repl.stateTransition.{field}");
    let what = at(&status, &of("lastStateTransition")).and_then(Bson::as_str).unwrap_or_default().to_owned();
    (what, number(&status, &of("userOperationsKilled")), number(&status, &of("userOperationsRunning")))
}

#[test]
fn a_step_down_ends_writes_and_lets_reads_go_on() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        assert_eq!(transition(&set, p).await.0, "stepUp");
        let mut reader = set.connect(p).await;
        let many: Vec<Bson> = (0..300).map(|i| doc! { "_id": i }.into()).collect();
        let mut bulk = doc! { "insert": "c" };
        bulk.push("documents", many);
        bulk.push("writeConcern", doc! { "w": 3, "wtimeout": 30_000 });
        reader.ok(bulk).await;
        let cursor = reader.ok(anywhere(doc! { "find": "c", "batchSize": 10 })).await;
        let id = number(&cursor, "cursor.id");
        // A write that waits inside the server, and an operation that is no write.
        set.connect(p).await.admin(doc! { "fsync": 1, "lock": true }).await;
        let (mut writer, mut sleeper) = (set.connect(p).await, set.connect(p).await);
        let writing = spawn(async move { writer.run(insert(1000, majority())).await });
        let sleeping = spawn(async move { sleeper.admin(doc! { "sleep": 1, "millis": 1500 }).await });
        pause(300).await;
        let down = set.connect(p).await.admin(doc! { "replSetStepDown": 30 }).await;
        assert!(is(&down, "ok"));
        assert_eq!(code(&writing.await.unwrap()), 11602);
        let (what, killed, running) = transition(&set, p).await;
        assert_eq!((what.as_str(), killed), ("stepDown", 1));
        assert!(running >= 1, "the sleeper and the step-down itself");
        assert!(is(&sleeping.await.unwrap(), "ok"));
        // The connection and its cursor are as they were.
        let more = reader.ok(doc! { "getMore": id, "collection": "c" }).await;
        assert_eq!(at(&more, "cursor.nextBatch").and_then(Bson::as_array).unwrap().len(), 290);
        let refused = reader.run(insert(1001, majority())).await;
        assert_eq!(code(&refused), 10107);
        let heir = set.primary().await;
        let mut c = set.connect(heir).await;
        c.ok(insert(1002, majority())).await;
        assert_eq!(count(&mut c).await, 301, "what was ended did not happen");
        set.connect(p).await.admin(doc! { "fsyncUnlock": 1 }).await;
        set.shut_down().await;
    });
}

#[test]
fn an_elected_member_that_lags_fetches_what_it_lacks_before_it_writes() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let s = set.secondaries().await;
        let mut c = set.connect(p).await;
        c.ok(insert(0, doc! { "w": 3, "wtimeout": 30_000 })).await;
        set.fail_point(s[0], "stopReplProducer", true).await;
        for id in 1..=20 {
            c.ok(insert(id, doc! { "w": 2, "wtimeout": 30_000 })).await;
        }
        // Only the lagging member may stand, and it needs the others' votes: they have more, so it loses.
        let stepped_up = set.connect(s[0]).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
        assert_eq!(code(&stepped_up), 125, "{stepped_up:?}");
        assert_eq!(set.primary().await, p);
        set.fail_point(s[0], "stopReplProducer", false).await;
        set.until("it has caught up", async |set| count(&mut set.connect(s[0]).await).await == 21).await;
        assert!(is(&set.connect(s[0]).await.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await, "ok"));
        set.until("it is primary", async |set| is(&set.hello(s[0]).await, "isWritablePrimary")).await;
        // The first entry of the term, and everything older, is committed with it.
        let mut c = set.connect(s[0]).await;
        let term = number(&c.admin(doc! { "replSetGetStatus": 1 }).await, "term");
        let first =
            c.all(doc! { "find": "oplog.rs", "filter": { "t": term }, "limit": 1, "$db": "local" }).await;
        assert_eq!(at(&first[0], "o.msg").and_then(Bson::as_str), Some("new primary"), "{first:?}");
        set.until("it is committed", async |set| {
            let status = set.connect(s[0]).await.admin(doc! { "replSetGetStatus": 1 }).await;
            number(&status, "optimes.lastCommittedOpTime.t") == term
        })
        .await;
        assert_eq!(count(&mut c).await, 21);
        set.shut_down().await;
    });
}

#[test]
fn a_step_down_needs_an_heir_unless_it_is_forced_and_only_one_is_tried_at_a_time() {
    run(async {
        let (set, p, s, mut c) = held_back().await;
        c.ok(insert(1, doc! { "w": 1 })).await;
        let step_down = |secs: i32, catch_up: i32, force: bool| -> Document {
            doc! {
                "replSetStepDown": secs, "secondaryCatchUpPeriodSecs": catch_up, "force": force, "$db": "admin"
            }
        };
        let mut other = set.connect(p).await;
        let first = step_down(30, 2, false);
        let waiting = spawn(async move { other.run(first).await });
        pause(500).await;
        assert_eq!(code(&c.run(step_down(30, 1, false)).await), 117);
        assert_eq!(code(&c.run(insert(2, doc! { "w": 1 })).await), 10107, "no writes while it is tried");
        assert_eq!(code(&waiting.await.unwrap()), 262);
        c.ok(insert(3, doc! { "w": 1 })).await;
        assert!(is(&c.run(step_down(30, 1, true)).await, "ok"));
        assert!(is(&set.hello(p).await, "secondary"));
        for i in &s {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        assert_ne!(set.primary().await, p);
        set.shut_down().await;
    });
}
