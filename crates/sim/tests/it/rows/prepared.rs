//! Prepared transactions through rollbacks and copies.

use super::initial_sync::{NEW, add, is_secondary, pair_and_one};
use super::parted::*;
use pando_base::Timestamp;
use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};

fn within(command: Document, start: bool) -> Document {
    super::rollback::within(command, 1, start)
}
fn one_more() -> Document {
    doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }] }
}
fn with_concern(mut command: Document, concern: Document) -> Document {
    command.push("writeConcern", concern);
    command
}
/// Adds 1 to document 1, prepared under this write concern.
fn prepare(rig: &Rig, member: usize, concern: Document) -> Timestamp {
    rig.ok(member, within(one_more(), true));
    let mut prepare = doc! { "prepareTransaction": 1, "$db": "admin" };
    prepare.push("writeConcern", concern);
    match rig.ok(member, within(prepare, false)).get("prepareTimestamp") {
        Some(Bson::Timestamp(at)) => *at,
        other => panic!("not prepared: {other:?}"),
    }
}
fn commit(at: Timestamp, concern: Document) -> Document {
    let mut commit = doc! { "commitTransaction": 1, "$db": "admin" };
    commit.push("commitTimestamp", at);
    commit.push("writeConcern", concern);
    within(commit, false)
}
fn value(rig: &Rig, member: usize) -> i64 {
    let found = rig.ok(member, anywhere(doc! { "find": "c", "filter": { "_id": 1 } }));
    at(&found, "cursor.firstBatch.0.n").and_then(Bson::as_i64).unwrap_or(0)
}

#[test]
fn a_commit_that_is_rolled_back_leaves_its_transaction_prepared() {
    let prepared = std::cell::Cell::new(Timestamp::ZERO);
    let p = Parted::after(
        140,
        |rig, p| {
            rig.ok(p, insert(1, w(3)));
            prepared.set(prepare(rig, p, on_disk(3)));
        },
        |rig, old| {
            rig.ok(old, commit(prepared.get(), w(1)));
            assert_eq!(value(rig, old), 1);
        },
        |rig, new| drop(rig.ok(new, insert(3, majority()))),
    );
    p.heal_and_settle();
    assert_eq!(value(&p.rig, p.old), 0, "undecided again");
    let files = p.files();
    let kept: Vec<Document> = files.iter().flat_map(|(_, bytes)| documents(bytes)).collect();
    assert!(kept.iter().any(|d| at(d, "n").and_then(Bson::as_i64) == Some(1)), "{kept:?}");
    let new = p.rig.primary();
    p.rig.ok(new, commit(prepared.get(), w(3)));
    for i in 0..3 {
        assert_eq!(value(&p.rig, i), 1, "member {i}");
    }
}

/// A checkpoint keeps what sessions have done; what may still be rolled back must not take the place of what may not.
pub(super) fn a_commit_that_a_checkpoint_saw_is_rolled_back_too() {
    let prepared = std::cell::Cell::new(Timestamp::ZERO);
    let p = Parted::after(
        144,
        |rig, p| {
            rig.ok(p, insert(1, w(3)));
            prepared.set(prepare(rig, p, on_disk(3)));
        },
        |rig, old| {
            rig.ok(old, commit(prepared.get(), w(1)));
            rig.admin(old, doc! { "_openBackup": 1 });
        },
        |rig, new| drop(rig.ok(new, insert(3, majority()))),
    );
    p.heal_and_settle();
    p.rig.until("its office", |rig| {
        rig.ask(p.old, doc! { "replSetStepUp": 1, "$db": "admin" });
        rig.wait_ms(2_000);
        rig.is_primary(p.old)
    });
    p.rig.ok(p.old, commit(prepared.get(), w(3)));
    for i in 0..3 {
        assert_eq!(value(&p.rig, i), 1, "member {i}");
    }
}
#[test]
fn what_is_prepared_stays_so_whatever_a_checkpoint_saw_of_it_before_a_rollback() {
    a_commit_that_a_checkpoint_saw_is_rolled_back_too();
}

#[test]
fn a_prepare_that_is_rolled_back_is_unknown_and_holds_nobody_up() {
    let p = Parted::after(
        141,
        |rig, p| drop(rig.ok(p, insert(1, w(3)))),
        |rig, old| {
            prepare(rig, old, w(1));
        },
        |rig, new| drop(rig.ok(new, with_concern(one_more(), majority()))),
    );
    p.heal_and_settle();
    let new = p.rig.primary();
    p.rig.ok(new, with_concern(one_more(), w(3)));
    assert_eq!(value(&p.rig, p.old), 2);
    let gone = p.rig.ask(new, within(doc! { "abortTransaction": 1, "$db": "admin" }, false));
    assert_eq!(code(&gone), 251, "{gone:?}");
}

fn a_copied_member_holds_what_was_prepared_before(seed: u64, method: &str) {
    let (mut rig, p) = pair_and_one(seed);
    rig.ok(p, insert(1, majority()));
    let prepared = prepare(&rig, p, majority());
    // Far behind the commit point when the copy is made.
    for id in 10..40 {
        rig.ok(p, insert(id, majority()));
    }
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
    assert_eq!(value(&rig, NEW), 0);
    rig.until("its office", |rig| {
        rig.ask(NEW, doc! { "replSetStepUp": 1, "$db": "admin" });
        rig.wait_ms(2_000);
        rig.is_primary(NEW)
    });
    rig.ok(NEW, commit(prepared, w(3)));
    for i in 0..3 {
        assert_eq!(value(&rig, i), 1, "member {i}");
    }
}
#[test]
fn a_member_that_was_copied_logically_decides_what_was_prepared_before_its_copy() {
    a_copied_member_holds_what_was_prepared_before(142, "logical");
}
#[test]
fn a_member_made_of_copied_files_decides_what_was_prepared_before_its_copy() {
    a_copied_member_holds_what_was_prepared_before(143, "fileCopyBased");
}
