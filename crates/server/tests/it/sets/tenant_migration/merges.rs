//! A set whose tenants all go to another one (SV-OUT-2).

use super::moves::write_until_told;
use super::*;
use pando_testserver::{JoinHandle, run, spawn};
use std::sync::Arc;

async fn fill(two: &Two) {
    let mut c = two.client(DONOR).await;
    for (db, n) in [("acme_db", 200), ("acme_more", 3), ("zeta_db", 50)] {
        let all: Vec<Bson> = (0..n).map(|id| doc! { "_id": id, "x": id % 7 }.into()).collect();
        let mut insert = doc! { "insert": "c" };
        insert.push("documents", all);
        insert.push("$db", db);
        c.ok(insert).await;
        c.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x_1" }], "$db": db })
            .await;
    }
    c.ok(doc! { "create": "empty", "$db": "zeta_db" }).await;
    c.ok(doc! { "create": "few", "viewOn": "c", "pipeline": [{ "$match": { "x": 1 } }], "$db": "zeta_db" })
        .await;
    two.client(RECIPIENT).await.ok(put("own_db", 1)).await;
}

async fn hashes(two: &Two, member: usize) -> Vec<Option<Bson>> {
    let mut all = Vec::new();
    for db in ["acme_db", "acme_more", "zeta_db"] {
        let hash = two.set.connect(member).await.run(anywhere(doc! { "dbHash": 1, "$db": db })).await;
        all.push(hash.get("md5").cloned());
    }
    all
}

#[test]
fn all_tenants_of_a_set_go_and_it_takes_no_new_ones() {
    run(async {
        let two = Two::start().await;
        fill(&two).await;
        let before = hashes(&two, two.primary(DONOR).await).await;
        let reply = two.merge(1).await;
        assert_eq!(reply.get("state"), Some(&"committed".into()), "{reply:?}");
        assert_eq!(two.databases(RECIPIENT).await, ["acme_db", "acme_more", "own_db", "zeta_db"]);
        let p = two.primary(RECIPIENT).await;
        assert_eq!(hashes(&two, p).await, before);
        for db in ["acme_db", "zeta_db"] {
            assert_eq!(code(&two.client(DONOR).await.run(look(db)).await), 321);
            assert_eq!(code(&two.client(DONOR).await.run(put(db, 999)).await), 321);
            let indexes = two.set.connect(p).await.all(doc! { "listIndexes": "c", "$db": db }).await;
            assert_eq!(indexes.len(), 2, "{db}");
        }
        assert_eq!(code(&two.client(DONOR).await.run(put("new_db", 1)).await), 321);
        let found = two.set.connect(p).await.all(doc! { "find": "few", "$db": "zeta_db" }).await;
        assert_eq!(found.len(), 7, "views come, too");
        two.client(RECIPIENT).await.ok(put("acme_db", 999)).await;
        two.client(RECIPIENT).await.ok(put("own_db", 2)).await;
        two.set
            .until("all members have all of it", async |_| {
                let first = hashes(&two, 3).await;
                hashes(&two, 4).await == first && hashes(&two, 5).await == first
            })
            .await;
        two.forget(1).await;
        two.until_gone(1).await;
        assert_eq!(two.databases(DONOR).await, [""; 0]);
        for i in two.members(RECIPIENT) {
            assert!(two.set.server(i).imports().expect("names").is_empty(), "member {i}");
        }
        two.client(DONOR).await.ok(put("new_db", 1)).await;
        two.done().await;
    });
}

/// Its checkpoint might lie behind by itself: behind the end of builds, and behind what tenants there are.
#[test]
fn a_backup_of_all_that_is_there_now_waits_for_a_majority() {
    run(async {
        let two = Two::start().await;
        fill(&two).await;
        let p = two.primary(DONOR).await;
        for i in two.members(DONOR).filter(|i| *i != p) {
            two.set.fail_point(i, "stopReplProducer", true).await;
        }
        let mut c = two.set.connect(p).await;
        let last = doc! { "insert": "late", "documents": [{ "_id": 1 }], "writeConcern": { "w": 1 }, "$db": "acme_db" };
        let written = match c.ok(last).await.get("operationTime") {
            Some(Bson::Timestamp(at)) => *at,
            other => panic!("{other:?}"),
        };
        let mut asker = two.set.connect(p).await;
        let task = spawn(async move { asker.admin(doc! { "_openBackup": 1, "upToNow": true }).await });
        pause(100).await;
        for i in two.members(DONOR).filter(|i| *i != p) {
            two.set.fail_point(i, "stopReplProducer", false).await;
        }
        match task.await.expect("an answer").get("checkpoint") {
            Some(Bson::Timestamp(at)) => assert!(*at > written, "{at:?} {written:?}"),
            other => panic!("{other:?}"),
        }
        two.done().await;
    });
}

/// As a recipient does whose primary is killed again and again amid the copy.
#[test]
fn who_begins_a_copy_anew_does_not_use_up_the_donors_backups() {
    run(async {
        let two = Two::start().await;
        let mut c = two.client(DONOR).await;
        for _ in 0..6 {
            let open = doc! { "_openBackup": 1, "upToNow": true, "owner": uuid(1) };
            c.admin(open).await;
        }
        two.done().await;
    });
}

#[test]
fn clients_write_while_their_set_is_merged() {
    run(async {
        let two = Arc::new(Two::start().await);
        fill(&two).await;
        let writers: Vec<_> = [1_000, 10_000]
            .map(|from| {
                let two = two.clone();
                spawn(async move { write_until_told(&two, from).await })
            })
            .into();
        let reply = two.merge(1).await;
        assert_eq!(reply.get("state"), Some(&"committed".into()), "{reply:?}");
        let mut acked: Vec<i64> = (0..200).collect();
        for writer in writers {
            let (ids, told) = writer.await.expect("it ends");
            assert_eq!(code(&told), 321, "{told:?}");
            acked.extend(ids);
        }
        let there = two.ids(RECIPIENT, "acme_db").await;
        assert!(acked.iter().all(|id| there.contains(id)), "{acked:?} {there:?}");
        two.forget(1).await;
        Arc::into_inner(two).expect("all have ended").done().await;
    });
}

#[test]
fn tenants_that_both_sets_have_stay_where_they_are() {
    run(async {
        let two = Two::start().await;
        fill(&two).await;
        two.client(RECIPIENT).await.ok(put("zeta_other", 7)).await;
        let reply = two.merge(1).await;
        assert_eq!(reply.get("state"), Some(&"aborted".into()), "{reply:?}");
        two.forget(1).await;
        two.until_gone(1).await;
        assert_eq!(two.databases(RECIPIENT).await, ["own_db", "zeta_other"]);
        two.client(DONOR).await.ok(put("acme_db", 999)).await;
        two.client(DONOR).await.ok(put("new_db", 1)).await;
        two.done().await;
    });
}

/// A merge that hangs at a member before that one's `n`-th step.
async fn merge_held_up(two: &Two, member: usize, n: usize) -> JoinHandle<Document> {
    two.set.hang_at(member, n).await;
    let before = two.set.entered(member);
    let task = {
        let mut c = two.client(DONOR).await;
        let start = two.merge_command(1);
        spawn(async move { c.try_run(start).await.unwrap_or_default() })
    };
    for _ in 0..200 {
        if two.set.entered(member) > before {
            break;
        }
        pause(10).await;
    }
    task
}
/// Killed before its `n`-th step; or, without a side, called off there.
async fn disturbed(of: Option<usize>, n: usize) {
    let mut two = Two::start().await;
    fill(&two).await;
    let side = of.unwrap_or(DONOR);
    let p = two.primary(side).await;
    let task = merge_held_up(&two, p, n).await;
    match of {
        Some(_) => {
            two.set.kill(p).await;
            // All of its members have to take the files in.
            two.restart(p).await;
        }
        None => {
            let abort = {
                let mut c = two.set.connect(p).await;
                spawn(async move { c.run(of_migration("donorAbortMigration", 1)).await })
            };
            pause(50).await;
            two.set.fail_point(p, "hangBeforeWorkflowAction", false).await;
            let _ = abort.await;
        }
    }
    let _ = task.await;
    let reply = two.merge(1).await;
    let committed = reply.get("state") == Some(&"committed".into());
    assert!(committed || of.is_none(), "{of:?} {n}: {reply:?}");
    two.forget(1).await;
    two.until_gone(1).await;
    let (owner, databases) = match committed {
        true => (RECIPIENT, [two.databases(DONOR).await.len(), two.databases(RECIPIENT).await.len()]),
        false => (DONOR, [two.databases(DONOR).await.len(), two.databases(RECIPIENT).await.len()]),
    };
    assert_eq!(databases, if committed { [0, 4] } else { [3, 1] }, "{of:?} {n}");
    assert_eq!(two.ids(owner, "acme_db").await.len(), 200, "{of:?} {n}");
    two.client(owner).await.ok(put("acme_db", 999)).await;
    two.client(RECIPIENT).await.ok(put("own_db", 2)).await;
    two.done().await;
}

#[test]
fn a_merge_goes_on_when_a_primary_is_killed() {
    run(async {
        for n in [1, 4, 6, 8] {
            disturbed(Some(DONOR), n).await;
        }
        for n in [2, 4, 5, 6, 7, 9] {
            disturbed(Some(RECIPIENT), n).await;
        }
    });
}
#[test]
fn a_merge_that_is_called_off_leaves_nothing_behind() {
    run(async {
        for n in [2, 4, 5, 6, 8] {
            disturbed(None, n).await;
        }
    });
}

/// The donor has given the merge up, and takes new tenants again, before the recipient has heard of that: it copies still.
#[test]
fn who_comes_into_being_behind_the_end_of_a_merge_does_not_go() {
    run(async {
        for n in [4, 5, 6] {
            let two = Two::start().await;
            fill(&two).await;
            let p = two.primary(RECIPIENT).await;
            let deaf = async |mode: &str| {
                let mut point = doc! { "configureFailPoint": "failCommand", "mode": mode };
                let failed = vec![Bson::from("recipientForgetMigration")];
                let mut data = doc! { "errorCode": 6, "failInternalCommands": true };
                data.push("failCommands", failed);
                point.push("data", data);
                two.set.connect(p).await.admin(point).await;
            };
            deaf("alwaysOn").await;
            let task = merge_held_up(&two, p, n).await;
            let abort = {
                let mut c = two.client(DONOR).await;
                spawn(async move { c.run(of_migration("donorAbortMigration", 1)).await })
            };
            let mut c = two.client(DONOR).await;
            for _ in 0..200 {
                if is(&c.run(put("new_db", 1)).await, "ok") {
                    break;
                }
                pause(10).await;
            }
            assert_eq!(two.ids(DONOR, "new_db").await, [1], "{n}");
            two.set.fail_point(p, "hangBeforeWorkflowAction", false).await;
            let _ = (abort.await, task.await);
            two.set
                .until("it has copied", async |set| {
                    set.server(p).databases().iter().any(|db| db == "acme_db")
                })
                .await;
            pause(500).await;
            deaf("off").await;
            two.forget(1).await;
            two.until_gone(1).await;
            assert_eq!(two.databases(RECIPIENT).await, ["own_db"], "{n}");
            assert_eq!(two.ids(DONOR, "new_db").await, [1], "{n}");
            two.done().await;
        }
    });
}
