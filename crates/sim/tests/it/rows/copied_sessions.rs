//! A copied member answers retries of writes from before its own log.

use super::initial_sync::{NEW, add, fill, is_secondary, pair_and_one};
use super::rollback::{add_one, retryable};
use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};

/// The timestamp of the oldest entry of a member's log.
fn first_entry(rig: &Rig, i: usize) -> Option<Bson> {
    let mut c = doc! { "find": "oplog.rs", "sort": { "$natural": 1 }, "limit": 1, "$db": "local" };
    c.push("$readPreference", doc! { "mode": "secondaryPreferred" });
    at(&rig.ask(i, c), "cursor.firstBatch.0.ts").cloned()
}

fn a_retry_after_a_copy(seed: u64, method: &str) {
    let (mut rig, p) = pair_and_one(seed);
    rig.ok(p, insert(1, majority()));
    let once = rig.ok(p, retryable(add_one(0, majority()), 7, 1));
    rig.ok(p, retryable(add_one(0, majority()), 8, 3));
    let Some(Bson::Timestamp(written)) = at(&once, "opTime.ts").cloned() else { panic!("{once:?}") };
    fill(&rig, p, "big", 500);
    rig.wait_ms(3_000);
    let server = rig.nodes[NEW].server().expect("a running member");
    server.instance.params.set_at_startup("initialSyncMethod", method).unwrap();
    drop(server);
    add(&rig, p, &Document::new());
    if method == "fileCopyBased" {
        rig.until("the end of the process", |rig| rig.nodes[NEW].exit().is_some());
        rig.nodes[NEW].boot();
    }
    rig.until("a secondary", |rig| is_secondary(rig, NEW));
    if method == "logical" {
        let first = first_entry(&rig, NEW);
        assert!(matches!(first, Some(Bson::Timestamp(ts)) if ts > written), "{first:?} {written:?}");
    }
    let shown = rig.ok(NEW, anywhere(doc! { "find": "transactions", "$db": "config" }));
    let counted = rig.ok(NEW, anywhere(doc! { "count": "transactions", "$db": "config" }));
    let shown = at(&shown, "cursor.firstBatch").and_then(Bson::as_array).map_or(0, <[Bson]>::len);
    assert_eq!(
        (shown as i64, shown >= 2),
        (number(&counted, "n"), true),
        "also of entries that its log never had"
    );
    // What it was told outlives its process.
    rig.nodes[NEW].lose_power();
    rig.nodes[NEW].boot();
    rig.until("a secondary", |rig| is_secondary(rig, NEW));
    rig.until("its office", |rig| {
        rig.ask(NEW, doc! { "replSetStepUp": 1, "$db": "admin" });
        rig.wait_ms(2_000);
        rig.is_primary(NEW)
    });
    let again = rig.ok(NEW, retryable(add_one(0, majority()), 7, 1));
    assert_eq!(at(&again, "retriedStmtIds.0").and_then(Bson::as_i64), Some(0), "{again:?}");
    let older = rig.ask(NEW, retryable(add_one(0, majority()), 8, 2));
    assert_eq!(code(&older), 225, "{older:?}");
    let found = rig.ok(NEW, doc! { "find": "c", "filter": { "_id": 1 } });
    assert_eq!(number(&found, "cursor.firstBatch.0.n"), 2, "{found:?}");
}

#[test]
fn a_member_that_was_copied_logically_answers_a_retry_from_before_its_log() {
    a_retry_after_a_copy(120, "logical");
}
#[test]
fn a_member_made_of_copied_files_answers_a_retry_from_before_its_copy() {
    a_retry_after_a_copy(121, "fileCopyBased");
}
