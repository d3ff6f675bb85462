//! A tenant goes to another set while it is written to.

use super::*;
use pando_testserver::{run, spawn};

/// Writes until it is told where the tenant is. What was acknowledged, and what it was told.
pub(super) async fn write_until_told(two: &Two, from: i32) -> (Vec<i64>, Document) {
    let mut acked = Vec::new();
    for id in from.. {
        let reply = two.ask(DONOR, put("acme_db", id)).await;
        match code(&reply) {
            0 if reply.get("writeErrors").is_none() && reply.get("writeConcernError").is_none() => {
                acked.push(i64::from(id));
            }
            // It may have been done by the primary that ended.
            0 | 11000 => {}
            321 | 325 => return (acked, reply),
            _ => panic!("{reply:?}"),
        }
        pause(5).await;
    }
    unreachable!("it is told")
}

#[test]
fn a_tenant_moves_with_all_it_has_and_nothing_else_does() {
    run(async {
        let two = Two::start().await;
        let mut c = two.client(DONOR).await;
        for (db, n) in [("acme_db", 300), ("acme_more", 3), ("acme2_db", 2), ("other_db", 1), ("acme", 1)] {
            for id in 0..n {
                c.ok(doc! { "insert": "c", "documents": [{ "_id": id, "x": id }], "$db": db }).await;
            }
        }
        c.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x_1" }], "$db": "acme_db" }).await;
        let before =
            two.set.connect(two.primary(DONOR).await).await.run(doc! { "dbHash": 1, "$db": "acme_db" }).await;
        two.moved(1, "acme").await;

        assert_eq!(two.databases(RECIPIENT).await, ["acme_db", "acme_more"]);
        let after = two.client(RECIPIENT).await.run(doc! { "dbHash": 1, "$db": "acme_db" }).await;
        assert_eq!(before.get("md5"), after.get("md5"));
        let indexes = two.client(RECIPIENT).await.all(doc! { "listIndexes": "c", "$db": "acme_db" }).await;
        assert_eq!(indexes.len(), 2);
        assert_eq!(code(&two.client(DONOR).await.run(look("acme_db")).await), 321);
        assert_eq!(code(&two.client(DONOR).await.run(put("acme_more", 9)).await), 321);
        two.client(DONOR).await.ok(put("other_db", 9)).await;
        two.client(RECIPIENT).await.ok(put("acme_db", 999)).await;

        two.forget(1).await;
        two.until_gone(1).await;
        assert_eq!(two.databases(DONOR).await, ["acme2_db", "other_db"], "what is elsewhere is not kept");
        assert_eq!(two.ids(RECIPIENT, "acme_db").await.len(), 301);
        for i in two.members(RECIPIENT) {
            let found = two.set.connect(i).await.all(anywhere(look("acme_more"))).await;
            assert_eq!(found.len(), 3, "member {i}");
        }
        two.done().await;
    });
}

#[test]
fn writers_are_told_once_and_nothing_that_was_acknowledged_is_lost() {
    run(async {
        let two = std::sync::Arc::new(Two::start().await);
        two.client(DONOR).await.ok(put("acme_db", -1)).await;
        let writers: Vec<_> = [0, 10_000, 20_000]
            .map(|from| {
                let two = two.clone();
                spawn(async move { write_until_told(&two, from).await })
            })
            .into();
        two.moved(1, "acme").await;
        let mut acked = vec![-1];
        for writer in writers {
            let (ids, told) = writer.await.expect("it ends");
            assert_eq!(code(&told), 321, "{told:?}");
            acked.extend(ids);
        }
        let there = two.ids(RECIPIENT, "acme_db").await;
        assert!(acked.iter().all(|id| there.contains(id)), "{acked:?} {there:?}");
        two.forget(1).await;
        std::sync::Arc::into_inner(two).expect("all have ended").done().await;
    });
}

#[test]
fn a_tenant_goes_there_and_back() {
    run(async {
        let two = Two::start().await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        two.moved(1, "acme").await;
        two.forget(1).await;
        two.until_gone(1).await;
        two.client(RECIPIENT).await.ok(put("acme_db", 2)).await;
        let mut back = doc! { "donorStartMigration": 1, "migrationId": uuid(2) };
        back.push("recipientConnectionString", two.connection(DONOR));
        back.push("tenantId", "acme");
        back.push("$db", "admin");
        loop {
            let reply = two.ask(RECIPIENT, back.clone()).await;
            match reply.get("state").and_then(Bson::as_str) {
                Some("committed") => break,
                Some("aborted") | None => panic!("{reply:?}"),
                _ => pause(20).await,
            }
        }
        two.client(DONOR).await.ok(put("acme_db", 3)).await;
        assert_eq!(two.ids(DONOR, "acme_db").await, [1, 2, 3]);
        assert_eq!(code(&two.client(RECIPIENT).await.run(look("acme_db")).await), 321);
        two.done().await;
    });
}

#[test]
fn what_a_session_has_done_is_not_done_again_at_the_new_owner() {
    run(async {
        let two = Two::start().await;
        let mut c = two.client(DONOR).await;
        c.ok(put("acme_db", 1)).await;
        let inc = |field: &str| {
            let mut by = Document::new();
            by.push(field, 1);
            let updates = vec![Bson::from(doc! { "q": { "_id": 1 }, "u": { "$inc": by } })];
            let mut update = doc! { "update": "c", "$db": "acme_db" };
            update.push("updates", updates);
            update
        };
        let mut once = of_session(inc("n"), 7, 5);
        once.push("writeConcern", majority());
        c.ok(once.clone()).await;
        c.ok(within(inc("m"), 8, 6, true)).await;
        c.ok(commit(8, 6)).await;
        two.moved(1, "acme").await;
        let mut there = two.client(RECIPIENT).await;
        let again = there.ok(once).await;
        assert_eq!(number(&again, "n"), 1);
        there.ok(commit(8, 6)).await;
        let found = there.all(look("acme_db")).await;
        assert_eq!((number(&found[0], "n"), number(&found[0], "m")), (1, 1), "{found:?}");
        two.done().await;
    });
}

#[test]
fn nobody_gets_at_a_tenant_that_comes_before_the_donor_has_decided() {
    run(async {
        let two = Two::start().await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        let p = two.primary(RECIPIENT).await;
        let mut seen = Vec::new();
        // Stands still before each step of the recipient.
        for n in 0..12 {
            let id = n as u8 + 1;
            two.set.hang_at(p, n).await;
            let before = two.set.entered(p);
            let starts = {
                let mut c = two.client(DONOR).await;
                let start = two.start_command(id, "acme");
                spawn(async move { c.run(start).await })
            };
            let mut hangs = false;
            for _ in 0..100 {
                hangs = two.set.entered(p) > before;
                let decided = two.state(DONOR, id).await;
                let decided = decided.and_then(|d| d.get("state")?.as_str().map(|s| s == "committed"));
                if hangs || decided == Some(true) {
                    break;
                }
                pause(20).await;
            }
            if hangs {
                let state = two.state(RECIPIENT, id).await;
                let text = state.as_ref().and_then(|d| d.get("state")?.as_str()).unwrap_or("none").to_owned();
                let reply = two.set.connect(p).await.run(briefly(look("acme_db"))).await;
                let wrote = two.set.connect(p).await.run(briefly(put("acme_db", 99))).await;
                let mut exact = look("acme_db");
                exact.push("readConcern", doc! { "level": "linearizable" });
                let exact = two.set.connect(p).await.run(briefly(exact)).await;
                if matches!(code(&reply), 239 | 50) {
                    assert_eq!(code(&exact), code(&reply), "{exact:?}");
                }
                let before = state.as_ref().is_some_and(|d| d.get("rejectReadsBeforeTimestamp").is_some());
                match (text.as_str(), before) {
                    ("none" | "uninitialized", _) => {}
                    ("started", _) | ("consistent", false) => {
                        assert_eq!((code(&reply), code(&wrote)), (239, 239), "{state:?} {reply:?} {wrote:?}");
                    }
                    ("consistent", true) => assert_eq!((code(&reply), code(&wrote)), (50, 50), "{state:?}"),
                    ("committed", _) => {}
                    _ => panic!("{state:?}"),
                }
                seen.push(text);
            }
            two.set.fail_point(p, "hangBeforeWorkflowAction", false).await;
            let _ = starts.await;
            let end = two.migrate(id, "acme").await;
            two.forget(id).await;
            two.until_gone(id).await;
            if end.get("state") == Some(&"committed".into()) {
                // It is the recipient's now, and goes away by hand.
                two.client(RECIPIENT).await.ok(doc! { "dropDatabase": 1, "$db": "acme_db" }).await;
                two.client(DONOR).await.ok(put("acme_db", 1)).await;
            } else {
                two.client(RECIPIENT).await.ok(doc! { "dropDatabase": 1, "$db": "acme_db" }).await;
            }
        }
        for state in ["started", "consistent"] {
            assert!(seen.iter().any(|s| s == state), "{seen:?}");
        }
        two.done().await;
    });
}
