//! `enableMajorityReadConcern: false`: stable runs ahead of the commit point, and a rollback fetches what it takes back.

use super::parted::*;
use pando_bson::{Bson, Document, doc};
use pando_sim::Exit;
use pando_sim::rig::{Rig, words::*};

const STEPS: [&str; 5] = [
    "rollbackHangAfterTransitionToRollback",
    "rollbackHangBeforeFetching",
    "rollbackHangAfterIncrementingRollbackId",
    "rollbackHangAfterWritingRollbackFiles",
    "rollbackHangAfterRecoveringToStable",
];

fn update(id: i32, set: Document) -> Document {
    let mut u = Document::new();
    u.push("$set", set);
    let mut one = doc! { "q": { "_id": id } };
    one.push("u", u);
    let mut c = doc! { "update": "c", "writeConcern": { "w": 1 } };
    c.push("updates", vec![Bson::from(one)]);
    c
}
fn delete(id: i32) -> Document {
    doc! { "delete": "c", "deletes": [{ "q": { "_id": id }, "limit": 1 }], "writeConcern": { "w": 1 } }
}
fn checked(rig: &Rig, i: usize, name: &str) {
    let reply = rig.ok(i, anywhere(doc! { "validate": name, "full": true, "enforceFastCount": true }));
    assert!(reply.get("valid").is_some_and(Bson::is_truthy), "{reply:?}");
}
/// Not by an initial sync.
fn never_emptied(rig: &Rig, i: usize) {
    let server = rig.nodes[i].server().expect("it runs");
    assert!(server.access.maintenance().promised().unwrap().is_null(), "it has given its data up");
}

/// Both sides change the same and other documents, under a unique and a multikey index.
fn entangled(rig: Rig, arrays: bool) -> Parted {
    let p = Parted::after_in(
        rig,
        |rig, p| {
            rig.ok(p, doc! { "createIndexes": "c", "indexes": [
                { "key": { "u": 1 }, "name": "u", "unique": true, "sparse": true }, { "key": { "m": 1 }, "name": "m" }
            ] });
            for id in 0..12 {
                rig.ok(p, insert(id, w(3)));
                rig.ok(p, update(id, doc! { "u": id, "m": id }));
            }
            rig.ok(p, insert(50, w(3)));
        },
        |rig, old| {
            rig.ok(old, update(1, doc! { "u": 101, "only": "old" }));
            rig.ok(old, update(2, doc! { "u": 1 }));
            rig.ok(old, delete(3));
            rig.ok(old, delete(4));
            rig.ok(old, insert(4, w(1)));
            rig.ok(old, insert(60, w(1)));
            rig.ok(
                old,
                update(
                    5,
                    if arrays {
                        doc! { "m": [1, 2, 3] }
                    } else {
                        doc! { "m": -5 }
                    },
                ),
            );
            rig.ok(old, update(6, doc! { "u": 3 }));
        },
        |rig, new| {
            // Keys go from hand to hand: 1 and 2 change places, 3 gives its own to a newcomer.
            rig.ok(new, update(1, doc! { "u": 201 }));
            rig.ok(new, update(2, doc! { "u": 1 }));
            rig.ok(new, update(1, doc! { "u": 2, "only": "new" }));
            rig.ok(new, delete(3));
            rig.ok(new, insert(61, w(1)));
            rig.ok(new, update(61, doc! { "u": 3 }));
            rig.ok(new, update(5, doc! { "m": "x" }));
            rig.ok(new, delete(7));
            rig.ok(new, update(8, doc! { "u": 7 }));
            rig.ok(new, insert(62, majority()));
        },
    );
    p.rig.world.watch_lines(&[21612]);
    p
}
fn untangled(p: &Parted) {
    p.heal_and_settle();
    let told = p.rig.world.take_lines();
    assert!(told.iter().any(|l| l.attr.contains("documentsRefetched")), "{told:?}");
    checked(&p.rig, p.old, "c");
    never_emptied(&p.rig, p.old);
    assert_eq!(number(&p.rig.ok(p.old, anywhere(doc! { "count": "c" })), "n"), 13 - 2 + 2);
    // Whoever has it counts again, and can be elected.
    make_primary(&p.rig, p.old);
    p.rig.ok(p.old, insert(90, w(3)));
    let taken = p.rig.ask(p.old, update(90, doc! { "u": 7 }));
    assert!(at(&taken, "writeErrors.0.code").is_some(), "the key is 8's: {taken:?}");
}

#[test]
fn what_was_written_alone_is_fetched_from_the_set_and_keys_find_their_owners() {
    for seed in 0..4 {
        untangled(&entangled(Rig::without_majority_reads(200 + seed, 3), seed % 2 == 0));
    }
}

#[test]
fn refetch_can_be_forced_and_comes_to_the_same() {
    let p = entangled(Rig::of(210, 3), true);
    let server = p.rig.nodes[p.old].server().unwrap();
    server.instance.params.set_at_startup("enableTestCommands", "1").unwrap();
    server.instance.params.set_at_startup("forceRollbackViaRefetch", "true").unwrap();
    drop(server);
    untangled(&p);
}

/// Its own tables are ahead of the common point, and older versions are gone with the process.
#[test]
fn a_primary_that_lost_power_after_a_checkpoint_of_what_it_wrote_alone_fetches_it_back() {
    for seed in 0..3 {
        let mut p = entangled(Rig::without_majority_reads(220 + seed, 3), false);
        let stable = |p: &Parted| p.rig.nodes[p.old].server().unwrap().storage.recovery_ts();
        let last = log_of(&p.rig, p.old).last().unwrap().0;
        p.rig.until("a checkpoint past the commit point", |_| stable(&p) >= last);
        p.rig.nodes[p.old].lose_power();
        p.rig.nodes[p.old].boot();
        untangled(&p);
    }
}

#[test]
fn definitions_that_were_changed_alone_are_as_the_set_has_them() {
    let p = Parted::after_in(
        Rig::without_majority_reads(230, 3),
        |rig, p| {
            for name in ["dropped", "indexed"] {
                rig.ok(
                    p,
                    doc! { "insert": name, "documents": [{ "_id": 1 }, { "_id": 2 }], "writeConcern": w(3) },
                );
            }
            rig.ok(p, insert(1, w(3)));
        },
        |rig, old| {
            rig.ok(
                old,
                doc! { "delete": "dropped", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }],
                "writeConcern": { "w": 1 } },
            );
            rig.ok(old, doc! { "drop": "dropped", "writeConcern": { "w": 1 } });
            rig.ok(old, doc! { "insert": "only_here", "documents": [{ "_id": 1 }], "writeConcern": w(1) });
        },
        |rig, new| drop(rig.ok(new, insert(3, majority()))),
    );
    p.heal_and_settle();
    assert_eq!(number(&p.rig.ok(p.old, anywhere(doc! { "count": "dropped" })), "n"), 2);
    checked(&p.rig, p.old, "dropped");
    never_emptied(&p.rig, p.old);
    let there = p.rig.ok(p.old, anywhere(doc! { "listCollections": 1, "filter": { "name": "only_here" } }));
    assert_eq!(at(&there, "cursor.firstBatch").and_then(Bson::as_array).map(<[Bson]>::len), Some(0));
}

#[test]
fn a_dropped_database_cannot_be_fetched_back_and_the_node_says_so() {
    let mut p = Parted::after_in(
        Rig::without_majority_reads(240, 3),
        |rig, p| drop(rig.ok(p, insert(1, w(3)))),
        |rig, old| {
            // The entry itself comes once the collections' drops are with the others.
            rig.heal();
            let asked = rig.start(old, doc! { "dropDatabase": 1, "writeConcern": { "w": 1 } });
            let logged = |rig: &Rig| {
                let server = rig.nodes[old].server().unwrap();
                let mut log = server.storage.log().read(std::ops::Bound::Unbounded, true);
                let entry = log.next().unwrap().unwrap().1;
                pando_bson::RawDoc::trusted(&entry).get_path("o.dropDatabase").is_some()
            };
            for _ in 0..200_000 {
                if logged(rig) {
                    break;
                }
                rig.wait(std::time::Duration::from_micros(20));
            }
            rig.isolate(old);
            assert!(logged(rig), "{:?}", asked.answer());
            let elsewhere =
                rig.others(old).into_iter().any(|i| log_of(rig, i).len() == log_of(rig, old).len());
            assert!(!elsewhere, "it was too late");
        },
        |rig, new| drop(rig.ok(new, insert(3, majority()))),
    );
    let before = log_of(&p.rig, p.old);
    p.rig.heal();
    p.rig.until("the end of the process", |rig| rig.nodes[p.old].exit().is_some());
    let Some(Exit::Failed(why)) = p.rig.nodes[p.old].exit() else { panic!("not an error") };
    assert!(why.contains("cannot undo a dropDatabase") && why.contains("empty this member's data"), "{why}");
    // Nothing was changed; the way out that it names works.
    p.rig.isolate(p.old);
    p.rig.nodes[p.old].boot();
    p.rig.until("it runs", |rig| rig.nodes[p.old].server().is_some());
    assert_eq!(log_of(&p.rig, p.old), before);
    p.rig.nodes[p.old].lose_disk();
    p.rig.nodes[p.old].boot();
    p.heal_and_settle();
}

fn recovers(rig: &Rig, i: usize) {
    rig.until("RECOVERING", |rig| number(&rig.status(i), "myState") == 3);
    rig.wait_ms(3000);
    assert_eq!(number(&rig.status(i), "myState"), 3);
    let mark = rig.nodes[i].server().unwrap().access.maintenance().min_valid().unwrap().expect("a minValid");
    assert!(mark.undo_to.is_zero());
    for read in [find("local"), anywhere(doc! { "count": "c" })] {
        assert_eq!(code(&rig.ask(i, read)), 13436);
    }
}
fn valid_at_last(p: &Parted) {
    p.heal_and_settle();
    assert!(p.rig.nodes[p.old].server().unwrap().access.maintenance().min_valid().unwrap().is_none());
    assert_eq!(ids(&p.rig.ok(p.old, find("local"))), [1, 3]);
}

#[test]
fn nobody_reads_until_the_log_is_applied_up_to_what_was_fetched() {
    let p = Parted::usual_in(Rig::without_majority_reads(250, 3));
    switch(&p.rig, p.old, "rsSyncApplyStop", true);
    p.rig.heal();
    recovers(&p.rig, p.old);
    switch(&p.rig, p.old, "rsSyncApplyStop", false);
    valid_at_last(&p);
}

#[test]
fn a_member_that_died_before_its_data_was_valid_is_recovering_until_it_hears_of_the_rest() {
    let mut p = Parted::usual_in(Rig::without_majority_reads(251, 3));
    let step = "rollbackHangAfterRecoveringToStable";
    switch(&p.rig, p.old, step, true);
    p.rig.heal();
    p.rig.until(step, |rig| hangs_at(rig, p.old, step));
    p.rig.isolate(p.old);
    p.rig.nodes[p.old].lose_power();
    p.rig.nodes[p.old].boot();
    p.rig.until("it runs", |rig| rig.nodes[p.old].server().is_some());
    recovers(&p.rig, p.old);
    valid_at_last(&p);
}

#[test]
fn a_crash_at_any_step_of_a_refetch_ends_in_the_same_history() {
    for (at, step) in STEPS.into_iter().enumerate() {
        let mut p = Parted::usual_in(Rig::without_majority_reads(260 + at as u64, 3));
        switch(&p.rig, p.old, step, true);
        p.rig.heal();
        p.rig.until(step, |rig| hangs_at(rig, p.old, step));
        p.rig.nodes[p.old].lose_power();
        p.rig.nodes[p.old].boot();
        p.settle();
        assert_eq!(ids(&p.rig.ok(p.old, find("local"))), [1, 3], "{step}");
        checked(&p.rig, p.old, "c");
    }
}

#[test]
fn a_failed_sync_in_a_refetch_ends_the_process_and_the_next_one_goes_on_with_what_was_fetched() {
    let mut ended = 0;
    for n in 0..16 {
        let mut p = Parted::usual_in(Rig::without_majority_reads(270 + n, 3));
        p.rig.wait_ms(2000);
        p.rig.nodes[p.old].disk.fail_sync_in(n);
        p.rig.heal();
        p.rig.until("an end", |rig| rig.nodes[p.old].exit().is_some() || same(rig, p.old, p.new));
        ended += u32::from(p.rig.nodes[p.old].exit().is_some());
        p.rig.nodes[p.old].lose_power();
        p.rig.nodes[p.old].boot();
        p.settle();
        assert_eq!(ids(&p.rig.ok(p.old, find("local"))), [1, 3], "sync {n}");
        checked(&p.rig, p.old, "c");
    }
    assert!(ended >= 8, "{ended}");
}

#[test]
fn stable_follows_what_is_written_and_majority_reads_are_refused() {
    let rig = Rig::without_majority_reads(290, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    rig.isolate(p);
    let alone = rig.ok(p, insert(2, w(1)));
    let Some(Bson::Timestamp(written)) = alone.get("operationTime").cloned() else { panic!("{alone:?}") };
    rig.wait_ms(2500);
    let server = rig.nodes[p].server().unwrap();
    assert!(server.storage.stable() >= written, "not committed, and stable");
    assert!(server.replication.progress.committed().op_time.ts < written);
    drop(server);
    for i in [p, rig.others(p)[0]] {
        let refused = rig.ask(i, find("majority"));
        assert_eq!(code(&refused), 148, "{refused:?}");
        let why = refused.get("errmsg").and_then(Bson::as_str);
        assert_eq!(why, Some("Majority read concern is not enabled."));
    }
    let status = rig.admin(p, doc! { "serverStatus": 1 });
    assert_eq!(at(&status, "storageEngine.supportsCommittedReads"), Some(&Bson::Boolean(false)));
}
