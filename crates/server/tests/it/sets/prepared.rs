//! Prepared transactions on a set of three: secondaries, failovers, new members, arbiters.

use crate::sets::words::*;
use pando_base::Timestamp;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Set, is, pause, run, spawn};

pub(crate) fn within(command: Document, session: u8, start: bool) -> Document {
    crate::sets::words::within(command, session, 1, start)
}
pub(crate) fn put(id: i32, n: i32) -> Document {
    doc! { "update": "c", "updates": [{ "q": { "_id": id }, "u": { "$set": { "n": n } } }] }
}
pub(crate) fn prepare(session: u8) -> Document {
    within(doc! { "prepareTransaction": 1, "$db": "admin", "writeConcern": majority() }, session, false)
}
pub(crate) fn commit(session: u8, at: Timestamp) -> Document {
    let mut command = doc! { "commitTransaction": 1, "commitTimestamp": at, "$db": "admin" };
    command.push("writeConcern", doc! { "w": 3, "wtimeout": 30_000 });
    within(command, session, false)
}
pub(crate) fn abort(session: u8) -> Document {
    let mut command = doc! { "abortTransaction": 1, "$db": "admin" };
    command.push("writeConcern", doc! { "w": 3, "wtimeout": 30_000 });
    within(command, session, false)
}
pub(crate) fn prepared_at(reply: &Document) -> Timestamp {
    match reply.get("prepareTimestamp") {
        Some(Bson::Timestamp(at)) => *at,
        _ => panic!("not prepared: {reply:?}"),
    }
}
fn find(id: i32, concern: Document) -> Document {
    anywhere(doc! { "find": "c", "filter": { "_id": id }, "readConcern": concern, "maxTimeMS": 500 })
}
async fn n_of(c: &mut Client, id: i32) -> Option<i64> {
    let found = c.all(find(id, doc! {})).await;
    found.first()?.get("n")?.as_i64()
}
/// Documents 0 to 3 on every member, and sessions 1 and 2 prepared: documents 1 and 2, and 5, with `n` ten times theirs.
async fn two_prepared(set: &Set) -> (Client, Timestamp, Timestamp) {
    let p = set.primary().await;
    let mut c = set.connect(p).await;
    for id in 0..4 {
        c.ok(insert(id, doc! { "w": 3, "wtimeout": 30_000 })).await;
    }
    c.ok(within(put(1, 10), 1, true)).await;
    c.ok(within(doc! { "insert": "c", "documents": [{ "_id": 5, "n": 50 }] }, 1, false)).await;
    let first = prepared_at(&c.ok(prepare(1)).await);
    c.ok(within(put(2, 20), 2, true)).await;
    let second = prepared_at(&c.ok(prepare(2)).await);
    (c, first, second)
}
async fn on_all(set: &Set, what: &str) -> bool {
    let mut all = Vec::new();
    for i in 0..3 {
        let status = set.connect(i).await.admin(anywhere(doc! { "serverStatus": 1 })).await;
        all.push(number(&status, &format!("transactions.{what}")));
    }
    all == [2, 2, 2]
}
async fn same_everywhere(set: &Set) {
    set.until("one content", async |set| {
        let mut all = Vec::new();
        for i in 0..3 {
            all.push(set.connect(i).await.run(anywhere(doc! { "dbHash": 1 })).await.get("md5").cloned());
        }
        all[0].is_some() && all[0] == all[1] && all[0] == all[2]
    })
    .await;
}

#[test]
fn secondaries_hold_what_is_prepared_and_their_readers_wait_by_the_same_rules() {
    run(async {
        let set = Set::of(3).await;
        let (mut c, first, _) = two_prepared(&set).await;
        set.until("two prepared everywhere", async |set| on_all(set, "currentPrepared").await).await;
        let s = set.secondaries().await;
        let mut other = set.connect(s[0]).await;
        assert_eq!(n_of(&mut other, 1).await, None);
        let after = doc! { "level": "local", "afterClusterTime": first };
        assert_eq!(code(&other.run(find(1, after.clone())).await), 50);
        assert_eq!(code(&other.run(find(3, after.clone())).await), 0, "another document");
        let mut waiting = set.connect(s[1]).await;
        let waiter = spawn(async move {
            let mut read = find(1, after);
            read.set("maxTimeMS", 30_000);
            let found = waiting.all(read).await;
            found.first().and_then(|d| d.get("n")?.as_i64())
        });
        pause(100).await;
        c.ok(commit(1, first)).await;
        assert_eq!(waiter.await.unwrap(), Some(10));
        assert_eq!((n_of(&mut other, 1).await, n_of(&mut other, 5).await), (Some(10), Some(50)));
        c.ok(abort(2)).await;
        assert_eq!(n_of(&mut other, 2).await, None);
        same_everywhere(&set).await;
        set.shut_down().await;
    });
}

#[test]
fn the_next_primary_holds_and_decides_what_the_last_one_prepared() {
    run(async {
        let set = Set::of(3).await;
        let (_, first, _) = two_prepared(&set).await;
        set.until("two prepared everywhere", async |set| on_all(set, "currentPrepared").await).await;
        for _ in 0..2 {
            let p = set.primary().await;
            assert!(is(
                &set.connect(p).await.admin(doc! { "replSetStepDown": 30, "force": true }).await,
                "ok"
            ));
            set.until("another primary", async |set| set.primary().await != p).await;
        }
        let heir = set.primary().await;
        let mut c = set.connect(heir).await;
        let mut d = set.connect(heir).await;
        let definition = spawn(async move { d.ok(doc! { "drop": "c" }).await });
        pause(200).await;
        assert!(!definition.is_finished(), "a primary holds the locks of what is prepared");
        let refused = c.run(within(put(3, 1), 1, false)).await;
        assert_eq!(code(&refused), 267, "{refused:?}");
        assert_eq!(prepared_at(&c.ok(prepare(1)).await), first);
        c.ok(commit(1, first)).await;
        assert_eq!(n_of(&mut c, 1).await, Some(10));
        c.ok(abort(2)).await;
        definition.await.unwrap();
        same_everywhere(&set).await;
        set.shut_down().await;
    });
}

#[test]
fn members_that_start_again_one_after_the_other_keep_what_is_prepared() {
    run(async {
        let mut set = Set::of(3).await;
        let (_, first, _) = two_prepared(&set).await;
        for i in 0..3 {
            set.stop(i).await;
            set.restart(i).await;
            set.settled().await;
        }
        set.until("two prepared everywhere", async |set| on_all(set, "currentPrepared").await).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        // As a coordinator does: the new primary may not know yet that a majority has it.
        c.ok(prepare(1)).await;
        c.ok(commit(1, first)).await;
        c.ok(abort(2)).await;
        assert_eq!(
            (n_of(&mut c, 1).await, n_of(&mut c, 2).await, n_of(&mut c, 5).await),
            (Some(10), None, Some(50))
        );
        same_everywhere(&set).await;
        set.shut_down().await;
    });
}

#[test]
fn a_commit_waits_for_the_majority_of_its_prepare_entry() {
    run(async {
        let (set, _, s, mut c) = held_back().await;
        c.ok(within(put(0, 10), 1, true)).await;
        let mut unsure = prepare(1);
        unsure.set("writeConcern", doc! { "w": 1 });
        let at = prepared_at(&c.ok(unsure).await);
        let early = c.run(commit(1, at)).await;
        let not_yet = "commitTransaction for a prepared transaction cannot be run before its prepare oplog entry has been \
                       majority committed";
        assert_eq!((code(&early), text(&early)), (72, not_yet));
        for i in &s {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        c.ok(prepare(1)).await;
        c.ok(commit(1, at)).await;
        assert_eq!(n_of(&mut c, 0).await, Some(10));
        set.shut_down().await;
    });
}

#[test]
fn a_set_with_an_arbiter_prepares_nothing() {
    run(async {
        let set = Set::with(&[doc! {}, doc! {}, doc! { "arbiterOnly": true }]).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        c.ok(insert(0, doc! { "w": 1 })).await;
        c.ok(within(put(0, 1), 1, true)).await;
        let refused = c.run(prepare(1)).await;
        let no_arbiters = "'prepareTransaction' is not supported for replica sets with arbiters";
        assert_eq!((code(&refused), text(&refused)), (148, no_arbiters));
        assert_eq!(code(&c.run(within(put(0, 1), 1, false)).await), 251, "it ended with that");
        set.shut_down().await;
    });
}

#[test]
fn an_attempt_to_step_down_that_fails_leaves_the_definitions_of_what_is_prepared_alone() {
    run(async {
        let set = Set::of(3).await;
        let (mut c, first, _) = two_prepared(&set).await;
        c.ok(abort(2)).await;
        let secondaries = set.secondaries().await;
        for s in &secondaries {
            set.fail_point(*s, "stopReplProducer", true).await;
        }
        c.ok(insert(9, doc! { "w": 1 })).await;
        let down = doc! { "replSetStepDown": 60, "secondaryCatchUpPeriodSecs": 1, "$db": "admin" };
        assert_eq!(code(&c.run(down).await), 262);
        let drop = doc! { "drop": "c", "maxTimeMS": 500, "writeConcern": { "w": 1 } };
        assert_eq!(code(&c.run(drop).await), 50, "it waits for the decision");
        for s in &secondaries {
            set.fail_point(*s, "stopReplProducer", false).await;
        }
        c.ok(commit(1, first)).await;
        assert_eq!(n_of(&mut c, 1).await, Some(10));
        set.shut_down().await;
    });
}
