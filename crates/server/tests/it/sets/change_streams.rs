//! Change streams and what happens to a set: only what a majority has is shown, and any member goes on.

use crate::sets::words::*;
use pando_bson::{Bson, Document, doc};
use pando_testserver::{Client, Set, run};

fn watch(spec: Document) -> Document {
    anywhere(doc! { "aggregate": "c", "pipeline": [{ "$changeStream": spec }], "cursor": {} })
}
fn cursor(reply: &Document) -> (i64, Vec<Document>, Document) {
    let cursor = reply.get("cursor").and_then(Bson::as_doc).unwrap_or_else(|| panic!("{reply:?}"));
    let docs = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
    let Some(Bson::Array(docs)) = docs else { panic!("no batch: {cursor:?}") };
    let docs = docs.iter().filter_map(|d| d.as_doc().cloned()).collect();
    let token = cursor.get("postBatchResumeToken").and_then(Bson::as_doc).unwrap().clone();
    (number(cursor, "id"), docs, token)
}
async fn more(c: &mut Client, id: i64, ms: i64) -> (i64, Vec<Document>, Document) {
    cursor(&c.ok(doc! { "getMore": id, "collection": "c", "maxTimeMS": ms }).await)
}
fn ids(events: &[Document]) -> Vec<i64> {
    events.iter().map(|e| number(e, "documentKey._id")).collect()
}

#[test]
fn an_event_waits_for_its_majority() {
    run(async {
        let (set, p, s, mut c) = held_back().await;
        let (id, none, _) = cursor(&c.ok(watch(doc! {})).await);
        assert!(none.is_empty());
        set.connect(p).await.ok(insert(1, doc! { "w": 1 })).await;
        let (id, none, _) = more(&mut c, id, 300).await;
        assert!(none.is_empty(), "{none:?}");
        for i in &s {
            set.fail_point(*i, "stopReplProducer", false).await;
        }
        let (_, events, _) = more(&mut c, id, 20_000).await;
        assert_eq!(ids(&events), [1]);
        set.shut_down().await;
    });
}

#[test]
fn a_stream_goes_on_with_the_next_primary_and_misses_nothing() {
    run(async {
        let mut set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        c.ok(insert(0, majority())).await;
        let (id, _, mut token) = cursor(&c.ok(watch(doc! {})).await);
        for i in 1..4 {
            c.ok(insert(i, majority())).await;
        }
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let (_, events, at) = more(&mut c, id, 10_000).await;
            seen.extend(ids(&events));
            token = at;
        }
        set.stop(p).await;
        let heir = set.primary().await;
        let mut c = set.connect(heir).await;
        c.ok(insert(4, majority())).await;
        let (mut id, events, _) = cursor(&c.ok(watch(doc! { "resumeAfter": token })).await);
        seen.extend(ids(&events));
        while seen.len() < 4 {
            let (next, events, _) = more(&mut c, id, 10_000).await;
            id = next;
            seen.extend(ids(&events));
        }
        assert_eq!(seen, [1, 2, 3, 4]);
        set.shut_down().await;
    });
}

#[test]
fn members_show_the_same_events() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        let (_, _, start) = cursor(&c.ok(watch(doc! {})).await);
        for i in 0..5 {
            c.ok(insert(i, doc! { "w": 3, "wtimeout": 30_000 })).await;
        }
        let mut shown = Vec::new();
        for i in 0..3 {
            let mut c = set.connect(i).await;
            let (mut id, mut events, _) = cursor(&c.ok(watch(doc! { "resumeAfter": start.clone() })).await);
            while events.len() < 5 {
                let next = anywhere(doc! { "getMore": id, "collection": "c", "maxTimeMS": 10_000 });
                let (at, some, _) = cursor(&c.ok(next).await);
                id = at;
                events.extend(some);
            }
            shown.push(events);
        }
        assert!(shown[0] == shown[1] && shown[1] == shown[2], "{shown:?}");
        set.shut_down().await;
    });
}

#[test]
fn the_fail_point_of_drivers_waits_for_a_clients_own_command() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        let (id, _, _) = cursor(&c.ok(watch(doc! {})).await);
        let mut once = doc! { "configureFailPoint": "failGetMoreAfterCursorCheckout" };
        once.push("mode", doc! { "times": 1 });
        once.push("data", doc! { "errorCode": 6 });
        c.admin(once).await;
        // Both secondaries ask for more of the log after each.
        for i in 0..3 {
            c.ok(insert(i, doc! { "w": 3, "wtimeout": 30_000 })).await;
        }
        assert_eq!(code(&c.run(doc! { "getMore": id, "collection": "c" }).await), 6);
        set.shut_down().await;
    });
}

#[test]
fn an_entry_with_two_large_documents_reaches_every_member() {
    run(async {
        let set = Set::of(3).await;
        let p = set.primary().await;
        let mut c = set.connect(p).await;
        c.ok(doc! { "create": "c", "changeStreamPreAndPostImages": { "enabled": true } }).await;
        let large = |letter: &str| letter.repeat(15 << 20);
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "f": large("x") }] }).await;
        let mut update = doc! { "update": "c", "updates": [{ "q": {}, "u": { "f": large("y") } }] };
        update.push("writeConcern", doc! { "w": 3, "wtimeout": 60_000 });
        c.ok(update).await;
        // And as part of a transaction.
        let update = doc! { "update": "c", "updates": [{ "q": {}, "u": { "f": large("z") } }] };
        c.ok(within(update, 3, 1, true)).await;
        let mut commit = within(doc! { "commitTransaction": 1, "$db": "admin" }, 3, 1, false);
        commit.push("writeConcern", doc! { "w": 3, "wtimeout": 60_000 });
        c.ok(commit).await;
        c.ok(insert(2, doc! { "w": 3, "wtimeout": 30_000 })).await;
        set.shut_down().await;
    });
}
