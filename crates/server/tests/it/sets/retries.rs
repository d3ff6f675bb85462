//! A retried findAndModify returns what its first try returned, whoever answers it.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Set, is, run};

fn retryable(command: Document, session: u8) -> Document {
    of_session(command, session, 1)
}
fn inc(id: i32, new: bool) -> Document {
    doc! { "findAndModify": "c", "query": { "_id": id }, "update": { "$inc": { "n": 1 } }, "new": new }
}
fn commands() -> Vec<Document> {
    let replace = doc! { "findAndModify": "c", "query": { "_id": 3 }, "update": { "r": 1 } };
    vec![
        inc(1, false),
        inc(2, true),
        replace,
        doc! { "findAndModify": "c", "query": { "_id": 4 }, "remove": true },
    ]
}
async fn values(c: &mut Client) -> Vec<Bson> {
    let mut values = Vec::new();
    for (i, mut command) in commands().into_iter().enumerate() {
        command.push("writeConcern", majority());
        values.push(c.ok(retryable(command, i as u8)).await.get("value").cloned().unwrap());
    }
    values
}
async fn documents(c: &mut Client) {
    let many: Vec<Bson> = (1..6).map(|i| doc! { "_id": i, "n": 10 }.into()).collect();
    let mut bulk = doc! { "insert": "c" };
    bulk.push("documents", many);
    c.ok(bulk).await;
}
async fn images(c: &mut Client) -> Vec<Document> {
    c.all(anywhere(doc! { "find": "image_collection", "sort": { "_id": 1 }, "$db": "config" })).await
}
async fn make_primary(set: &Set, i: usize) {
    set.until("it is primary", async |set| {
        let mut c = set.connect(i).await;
        c.run(doc! { "replSetFreeze": 0, "$db": "admin" }).await;
        c.run(doc! { "replSetStepUp": 1, "$db": "admin" }).await;
        is(&set.hello(i).await, "isWritablePrimary")
    })
    .await;
}

#[test]
fn the_next_primary_and_one_that_rolled_back_return_what_was_returned_first() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        without_catching_up(&set, p).await;
        let mut c = set.connect(p).await;
        documents(&mut c).await;
        let first = values(&mut c).await;
        c.ok(insert(0, doc! { "w": 3, "wtimeout": 30_000 })).await;
        let before = images(&mut c).await;
        assert_eq!(before.len(), 4);
        let rest: Vec<usize> = (0..3).filter(|i| *i != p).collect();
        for i in &rest {
            assert_eq!(images(&mut set.connect(*i).await).await, before, "on secondaries, too");
            set.fail_point(*i, "stopReplProducer", true).await;
        }
        // Known to nobody else.
        let mut alone = inc(5, false);
        alone.push("writeConcern", doc! { "w": 1 });
        c.ok(retryable(alone, 9)).await;
        assert_eq!(images(&mut c).await.len(), 5);
        c.admin(doc! { "replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 0, "force": true }).await;
        make_primary(&set, rest[0]).await;
        for i in &rest {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        let mut c = set.connect(rest[0]).await;
        assert_eq!(values(&mut c).await, first);
        let hash = async |i: usize| {
            set.connect(i).await.run(anywhere(doc! { "dbHash": 1 })).await.get("md5").cloned()
        };
        set.until("one history", async |set| {
            is(&set.hello(p).await, "secondary") && hash(p).await == hash(rest[0]).await
        })
        .await;
        assert_eq!(images(&mut set.connect(p).await).await, before, "that one is gone");
        make_primary(&set, p).await;
        let mut c = set.connect(p).await;
        assert_eq!(values(&mut c).await, first);
        let reply = c.ok(retryable(inc(5, false), 9)).await;
        assert!(!reply.contains("retriedStmtId"), "it is done now, not told again: {reply:?}");
        set.shut_down().await;
    });
}

#[test]
fn a_member_that_was_copied_returns_what_was_returned_before_its_copy() {
    run(async {
        let set = Set::started(2).await;
        let config = set.config(&[doc! {}, doc! {}]);
        let alone = doc! { "_id": config.get("_id").cloned().unwrap(), "version": 1,
        "members": [{ "_id": 0, "host": set.host(0) }], "settings": { "heartbeatIntervalMillis": 250 } };
        set.connect(0).await.admin(doc! { "replSetInitiate": alone }).await;
        set.until("it is primary", async |set| is(&set.hello(0).await, "isWritablePrimary")).await;
        let mut c = set.connect(0).await;
        documents(&mut c).await;
        let first = values(&mut c).await;
        let wide = doc! { "insert": "c", "documents": [{ "_id": "wide", "s": "x".repeat(4 << 20) }] };
        c.ok(wide).await;
        let touch =
            doc! { "findAndModify": "c", "query": { "_id": "wide" }, "update": { "$set": { "n": 1 } } };
        c.ok(retryable(touch.clone(), 9)).await;
        // The log of the copy begins with this one.
        c.ok(insert(0, majority())).await;
        let mut two = config.clone();
        two.set("version", 2);
        two.set("settings", doc! { "heartbeatIntervalMillis": 250 });
        assert!(is(&set.reconfig(two, true).await, "ok"));
        set.until("it is a secondary", async |set| is(&set.hello(1).await, "secondary")).await;
        let mut c = set.connect(1).await;
        let log =
            c.all(anywhere(doc! { "find": "oplog.rs", "filter": { "txnNumber": 1 }, "$db": "local" })).await;
        assert_eq!(log.len(), 0, "its log begins later");
        make_primary(&set, 1).await;
        assert_eq!(values(&mut c).await, first);
        // Too large to come along.
        assert_eq!(code(&c.run(retryable(touch, 9)).await), 217);
        let lost: Vec<Document> = images(&mut c).await.into_iter().filter(|i| is(i, "invalidated")).collect();
        assert_eq!(lost.len(), 1, "{lost:?}");
        set.shut_down().await;
    });
}

/// A copy's log begins late, and tells nothing of what was done before: what its source knows of that must come with the data.
#[test]
fn a_copy_of_a_copy_knows_what_was_done_before_both_logs_began() {
    run(async {
        let set = Set::started_with(3, |c| {
            let from = ("initialSyncSourceReadPreference", "secondaryPreferred");
            c.params.set_at_startup(from.0, from.1).expect("a known parameter");
        })
        .await;
        let mut c = set.connect(0).await;
        c.admin(doc! { "replSetInitiate": set.config(&[doc! {}]) }).await;
        set.until("it is primary", async |set| is(&set.hello(0).await, "isWritablePrimary")).await;
        documents(&mut c).await;
        let push = retryable(inc(1, false), 9);
        let first = c.ok(push.clone()).await.get("value").cloned();
        for members in 2..=3 {
            // What is newer than the statement, so that the copy's log begins behind it.
            c.ok(doc! { "insert": "d", "documents": [{}], "writeConcern": { "w": "majority" } }).await;
            if members == 3 {
                let mut busy = doc! { "configureFailPoint": "failCommand", "mode": { "times": 2 } };
                busy.push(
                    "data",
                    doc! { "failCommands": ["_keptSessions"], "errorCode": 46, "failInternalCommands": true },
                );
                set.connect(1).await.admin(busy).await;
            }
            let mut config = set.config(&vec![doc! {}; members]);
            config
                .set("version", set.current(0).await.get("version").and_then(Bson::as_i64).unwrap_or(0) + 1);
            assert!(is(&set.reconfig(config, false).await, "ok"));
            set.until("the new one has the data", async |set| is(&set.hello(members - 1).await, "secondary"))
                .await;
        }
        make_primary(&set, 2).await;
        let mut third = set.connect(2).await;
        assert_eq!(third.ok(push).await.get("value").cloned(), first);
        let found = third.all(doc! { "find": "c", "filter": { "_id": 1 } }).await;
        assert_eq!(found[0].get("n").and_then(Bson::as_i64), Some(11), "it was carried out once");
        set.shut_down().await;
    });
}
