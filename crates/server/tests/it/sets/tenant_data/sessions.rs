//! What sessions have done on the donor is not done again on the recipient.

use super::*;
use pando_testserver::run;

fn inc(id: i32) -> Document {
    doc! { "update": "c", "updates": [{ "q": { "_id": id }, "u": { "$inc": { "n": 1 } } }], "$db": "a_db" }
}
fn modify(id: i32, new: bool) -> Document {
    doc! { "findAndModify": "c", "query": { "_id": id }, "update": { "$inc": { "n": 1 } }, "new": new, "$db": "a_db" }
}
fn put(id: i32) -> Document {
    doc! { "insert": "c", "documents": [{ "_id": id, "n": 0 }], "$db": "a_db" }
}
fn put_for(id: i32, db: &str) -> Document {
    doc! { "insert": "c", "documents": [{ "_id": id, "n": 0 }], "$db": db }
}

/// Statements of sessions `first` and the following; what they returned.
async fn statements(c: &mut Client, first: u8) -> Vec<Document> {
    let base = i32::from(first) * 100;
    for id in 0..4 {
        c.ok(put(base + id)).await;
    }
    let mut told = Vec::new();
    for (i, command) in all(first).into_iter().enumerate() {
        told.push(c.ok(of_session(command, first + i as u8, 7)).await);
    }
    transaction(c, first + 5, base + 10).await;
    told
}
fn all(first: u8) -> Vec<Document> {
    let base = i32::from(first) * 100;
    let upsert = doc! { "update": "c", "updates": [{ "q": { "_id": base + 5 }, "u": { "$inc": { "n": 1 } }, "upsert": true }], "$db": "a_db" };
    vec![inc(base), modify(base + 1, true), modify(base + 2, false), put(base + 4), upsert]
}
async fn transaction(c: &mut Client, session: u8, id: i32) {
    c.ok(within(put_for(id, "b_db"), session, 7, true)).await;
    c.ok(within(put(id), session, 7, false)).await;
    c.ok(commit(session, 7)).await;
}

/// The same once more, at whoever has the tenant now.
async fn retried(c: &mut Client, first: u8, told: &[Document]) {
    let before = c.all(doc! { "find": "c", "sort": { "_id": 1 }, "$db": "a_db" }).await;
    for ((i, command), told) in all(first).into_iter().enumerate().zip(told) {
        let reply = c.ok(of_session(command.clone(), first + i as u8, 7)).await;
        for name in ["n", "nModified", "value", "upserted"] {
            assert_eq!(reply.get(name), told.get(name), "{name} of {command:?}: {reply:?}");
        }
        assert!(reply.get("writeErrors").is_none(), "{reply:?}");
    }
    let session = first + 5;
    c.ok(commit(session, 7)).await;
    c.ok(commit(session, 7)).await;
    let base = i32::from(first) * 100;
    assert_eq!(code(&c.run(within(put(base + 11), session, 7, false)).await), 256);
    assert_eq!(code(&c.run(within(put(base + 11), session, 6, true)).await), 225);
    assert_eq!(code(&c.run(of_session(put(base + 11), session, 7)).await), 217);
    assert_eq!(c.all(doc! { "find": "c", "sort": { "_id": 1 }, "$db": "a_db" }).await, before);
}

#[test]
fn a_retry_is_answered_and_not_carried_out_again_by_whoever_is_asked() {
    run(async {
        let mut pair = Pair::of(1, 3).await;
        let mut c = pair.from().await;
        let before = statements(&mut c, 10).await;
        // One that has nothing to do with the tenant.
        c.ok(within(put_for(1, "b_db"), 40, 3, true)).await;
        c.ok(commit(40, 3)).await;
        let start = pair.copy().await;
        let behind = statements(&mut c, 20).await;
        pair.catch_up(start).await;
        pair.same().await;

        let mut to = pair.to().await;
        retried(&mut to, 10, &before).await;
        retried(&mut to, 20, &behind).await;
        assert_eq!(code(&to.run(commit(40, 3)).await), 251);
        // Again: members that have learned it from the log.
        to.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": { "w": 3 }, "$db": "z_db" })
            .await;
        let p = pair.recipient.primary().await;
        pair.recipient.kill(p).await;
        let mut to = pair.to().await;
        retried(&mut to, 10, &before).await;
        retried(&mut to, 20, &behind).await;
        // And all of them from what they have kept.
        pair.recipient.restart(p).await;
        pair.recipient.settled().await;
        for i in 0..3 {
            pair.recipient.stop(i).await;
        }
        for i in 0..3 {
            pair.recipient.restart(i).await;
        }
        pair.recipient.settled().await;
        let mut to = pair.to().await;
        retried(&mut to, 10, &before).await;
        retried(&mut to, 20, &behind).await;
        pair.same().await;
        // Sessions go on here.
        to.ok(within(put(5), 15, 8, true)).await;
        to.ok(commit(15, 8)).await;
        to.ok(of_session(put(6), 10, 8)).await;
        pair.done().await;
    });
}

#[test]
fn a_member_that_is_copied_knows_them_too() {
    run(async {
        let mut pair = Pair::of(1, 1).await;
        let mut c = pair.from().await;
        let before = statements(&mut c, 10).await;
        pair.copy().await;
        // A start without a clean end, and one with it.
        for clean in [false, true] {
            pair.to().await.ok(doc! { "insert": "c", "documents": [{ "n": 1 }], "writeConcern": { "w": 1, "j": true }, "$db": "z_db" }).await;
            match clean {
                true => pair.recipient.stop(0).await,
                false => pair.recipient.kill(0).await,
            }
            pair.recipient.restart(0).await;
            pair.recipient.settled().await;
            retried(&mut pair.to().await, 10, &before).await;
        }
        pair.done().await;
    });
}

#[test]
fn a_session_that_has_gone_on_is_told_as_it_is_at_that_time() {
    run(async {
        let pair = Pair::of(1, 1).await;
        let mut c = pair.from().await;
        c.ok(put(1)).await;
        // Writes, then a transaction; a transaction, then writes; a transaction that is open, one that was given up.
        c.ok(of_session(inc(1), 1, 1)).await;
        c.ok(within(put(2), 1, 2, true)).await;
        c.ok(commit(1, 2)).await;
        c.ok(within(put(3), 2, 1, true)).await;
        c.ok(commit(2, 1)).await;
        c.ok(of_session(inc(1), 2, 2)).await;
        c.ok(within(put(4), 3, 1, true)).await;
        c.ok(within(put(5), 4, 1, true)).await;
        c.ok(within(doc! { "abortTransaction": 1, "$db": "admin" }, 4, 1, false)).await;
        let start = pair.copy().await;
        c.ok(commit(3, 1)).await;
        c.ok(of_session(inc(1), 1, 3)).await;
        pair.catch_up(start).await;
        pair.same().await;
        let mut to = pair.to().await;
        let n = async |to: &mut Client| {
            number(&to.all(doc! { "find": "c", "filter": { "_id": 1 }, "$db": "a_db" }).await[0], "n")
        };
        assert_eq!(n(&mut to).await, 3);
        assert_eq!(code(&to.run(commit(1, 2)).await), 225);
        assert_eq!(code(&to.run(commit(2, 1)).await), 225);
        to.ok(commit(3, 1)).await;
        assert_eq!(code(&to.run(commit(4, 1)).await), 251);
        to.ok(of_session(inc(1), 1, 3)).await;
        to.ok(of_session(inc(1), 2, 2)).await;
        assert_eq!(n(&mut to).await, 3);
        pair.done().await;
    });
}
