//! Change streams of a tenant that moves: everything that was before is read at its old owner, and what comes then at the new one.

use super::*;
use pando_testserver::run;

fn open(db: &str, spec: Document) -> Document {
    let mut d = doc! { "aggregate": 1 };
    d.push("pipeline", vec![Bson::from(doc! { "$changeStream": spec })]);
    d.push("cursor", doc! { "batchSize": 1 });
    d.push("$db", db);
    d
}
fn more(id: i64, db: &str) -> Document {
    let mut d = doc! { "getMore": id, "collection": "$cmd.aggregate", "batchSize": 1, "maxTimeMS": 100 };
    d.push("$db", db);
    d
}
fn token(reply: &Document) -> Document {
    at(reply, "cursor.postBatchResumeToken").and_then(Bson::as_doc).expect("a token").clone()
}
fn ids(reply: &Document, batch: &str) -> Vec<i64> {
    let events = at(reply, &format!("cursor.{batch}")).and_then(Bson::as_array).expect("a batch");
    let keys = events.iter().filter_map(|e| at(e.as_doc()?, "documentKey._id")?.as_i64());
    keys.collect()
}

#[test]
fn a_stream_reads_to_the_end_at_the_old_owner_and_goes_on_at_the_new_one() {
    run(async {
        let two = Two::start().await;
        let mut c = two.client(DONOR).await;
        c.ok(put("acme_db", 0)).await;
        let opened = c.ok(open("acme_db", doc! {})).await;
        let first = token(&opened);
        let cursor = number(&opened, "cursor.id");
        for id in 1..=5 {
            c.ok(put("acme_db", id)).await;
        }
        two.moved(1, "acme").await;
        let mut there = two.client(RECIPIENT).await;
        for id in 6..=8 {
            there.ok(put("acme_db", id)).await;
        }
        // Not of the old one's log.
        let early = there.run(open("acme_db", doc! { "resumeAfter": first.clone() })).await;
        assert_eq!(code(&early), 286, "{early:?}");
        let mut seen = Vec::new();
        let mut last = first.clone();
        let told = loop {
            let reply = c.run(more(cursor, "acme_db")).await;
            if !is(&reply, "ok") {
                break reply;
            }
            last = token(&reply);
            seen.extend(ids(&reply, "nextBatch"));
        };
        assert_eq!(code(&told), 367, "{told:?}");
        assert_eq!(seen, [1, 2, 3, 4, 5]);
        // Whoever has lost its cursor reads what it lacks at the old owner.
        let again = c.ok(open("acme_db", doc! { "resumeAfter": first })).await;
        assert_eq!(code(&c.run(open("acme_db", doc! { "resumeAfter": last.clone() })).await), 321);
        assert_eq!(code(&c.run(open("acme_db", doc! {})).await), 321);
        assert_eq!(number(&again, "ok"), 1);

        let reply = there.ok(open("acme_db", doc! { "resumeAfter": last })).await;
        let cursor = number(&reply, "cursor.id");
        let mut seen = ids(&reply, "firstBatch");
        for _ in 0..100 {
            if seen.len() >= 3 {
                break;
            }
            seen.extend(ids(&there.ok(more(cursor, "acme_db")).await, "nextBatch"));
        }
        assert_eq!(seen, [6, 7, 8], "and nothing of what was copied");
        two.done().await;
    });
}

#[test]
fn there_is_no_history_of_a_tenant_that_has_come() {
    run(async {
        let two = Two::start().await;
        two.client(DONOR).await.ok(put("acme_db", 1)).await;
        let mut there = two.client(RECIPIENT).await;
        let before = there.ok(put("other_db", 1)).await;
        let at_then = at(&before, "operationTime").expect("a time").clone();
        two.moved(1, "acme").await;
        let as_of = |time: Bson| {
            let mut concern = doc! { "level": "snapshot" };
            concern.push("atClusterTime", time);
            let mut d = look("acme_db");
            d.push("readConcern", concern);
            d
        };
        let reply = there.run(as_of(at_then)).await;
        assert_eq!(code(&reply), 239, "{reply:?}");
        let after = there.ok(put("acme_db", 2)).await;
        let found = there.ok(as_of(at(&after, "operationTime").expect("a time").clone())).await;
        assert_eq!(at(&found, "cursor.firstBatch").and_then(Bson::as_array).expect("a batch").len(), 2);
        two.done().await;
    });
}
