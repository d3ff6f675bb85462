//! What was written where no majority was, and how it is taken back.

use super::parted::*;
use pando_bson::{Bson, Document, doc};
use pando_env::Disk;
use pando_sim::Exit;
use pando_sim::rig::{Rig, words::*};

fn uuid_of(rig: &Rig, i: usize, name: &str) -> String {
    let listed = rig.ok(i, anywhere(doc! { "listCollections": 1, "filter": { "name": name } }));
    match at(&listed, "cursor.firstBatch.0.info.uuid") {
        Some(Bson::Binary(b)) => pando_base::Uuid::from_slice(&b.bytes).unwrap().to_string(),
        other => panic!("no uuid: {other:?}"),
    }
}

#[test]
fn documents_that_a_rollback_removes_are_in_bson_files() {
    let mut uuid = String::new();
    let p = Parted::after(
        1,
        |rig, p| {
            rig.ok(p, insert(1, w(3)));
            rig.ok(p, insert(9, w(3)));
            rig.ok(p, doc! { "insert": "d", "documents": [{ "_id": 1 }], "writeConcern": w(3) });
            uuid = uuid_of(rig, p, "c");
        },
        |rig, old| {
            let many: Vec<Bson> = (100..110).map(|i| doc! { "_id": i }.into()).collect();
            let mut bulk = doc! { "insert": "c", "writeConcern": w(1) };
            bulk.push("documents", many);
            rig.ok(old, bulk);
            let update = doc! { "q": { "_id": 1 }, "u": { "$set": { "x": "changed" } } };
            let mut updates = doc! { "update": "c", "writeConcern": w(1) };
            updates.push("updates", vec![Bson::from(update)]);
            rig.ok(old, updates);
            let gone = |id: i32| {
                let mut deletes = doc! { "delete": "c", "writeConcern": w(1) };
                deletes.push("deletes", vec![Bson::from(doc! { "q": { "_id": id }, "limit": 1 })]);
                deletes
            };
            // One that was there before, and one that was not.
            rig.ok(old, gone(9));
            rig.ok(old, gone(105));
        },
        |rig, new| drop(rig.ok(new, insert(3, majority()))),
    );
    p.heal_and_settle();
    assert_eq!(ids(&p.rig.ok(p.old, find("local"))), [1, 3, 9]);
    let files = p.files();
    let [(path, bytes)] = &files[..] else { panic!("{files:?}") };
    let name = path.strip_prefix(&format!("rollback/{uuid}/removed.")).expect(path);
    let (time, number) = name.strip_suffix(".0.bson").map(|t| (t, 0)).expect(path);
    assert_eq!((time.len(), &time[..11], number), (19, "2026-01-01T", 0), "{path}");
    let kept = documents(bytes);
    let expected = [vec![1], (100..105).collect(), (106..110).collect()].concat();
    let got: Vec<i64> = kept.iter().filter_map(|d| d.get("_id")?.as_i64()).collect();
    assert_eq!(got, expected);
    assert_eq!(kept[0].get("x").and_then(Bson::as_str), Some("changed"), "as it was just before");
    let status = p.rig.admin(p.old, doc! { "serverStatus": 1 });
    assert_eq!(number_of(&status, "count"), 1);
    assert_eq!(number_of(&status, "lastDocumentsInFiles"), 10);
    assert!(number_of(&status, "lastEntriesRolledBack") >= 13);
}

#[test]
fn what_an_encrypted_member_rolled_back_cannot_be_read_on_its_disk() {
    let word = "WordThatNobodyElseWrites";
    let readable = |bytes: &[u8]| bytes.windows(word.len()).any(|w| w == word.as_bytes());
    let run = |rig: Rig| {
        let p = Parted::after_in(
            rig,
            |rig, p| drop(rig.ok(p, insert(1, w(3)))),
            |rig, old| {
                let document: Bson = doc! { "_id": word, "text": word }.into();
                rig.ok(old, doc! { "insert": "c", "documents": [document], "writeConcern": w(1) });
            },
            |rig, new| drop(rig.ok(new, insert(3, majority()))),
        );
        p.heal_and_settle();
        let disk = &p.rig.nodes[p.old].disk;
        let places: Vec<String> =
            disk.paths().into_iter().filter(|path| readable(&disk.bytes(path))).collect();
        let files = p.files();
        assert_eq!(files.len(), 1, "{:?}", disk.paths());
        (places, p)
    };
    let (plain, _) = run(Rig::of(8, 3));
    assert!(plain.iter().any(|path| path.starts_with("rollback/")), "{plain:?}");
    let (places, p) = run(Rig::encrypted(8, 3));
    assert_eq!(places, [""; 0]);
    // With the keys it is what it would have been.
    let node = &p.rig.nodes[p.old];
    let sealed = node.encrypted_disk().expect("its keys");
    let file = sealed.open(&p.files()[0].0, false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    assert_eq!(documents(&bytes), [doc! { "_id": word, "text": word }]);
}

fn number_of(status: &Document, field: &str) -> i64 {
    number(status, &format!("metrics.repl.rollback.{field}"))
}

#[test]
fn no_rollback_files_are_written_when_they_are_not_wanted() {
    let p = Parted::usual(2);
    p.rig.admin(p.old, doc! { "setParameter": 1, "createRollbackDataFiles": false });
    p.heal_and_settle();
    assert_eq!(ids(&p.rig.ok(p.old, find("local"))), [1, 3]);
    assert!(p.files().is_empty());
}

#[test]
fn a_member_that_cannot_write_rollback_files_ends_unchanged_and_rolls_back_when_it_can() {
    let mut p = Parted::usual(3);
    p.rig.nodes[p.old].disk.set_full_folder(Some("rollback"));
    p.rig.heal();
    p.rig.until("the end of the process", |rig| rig.nodes[p.old].exit().is_some());
    let Some(Exit::Failed(why)) = p.rig.nodes[p.old].exit() else { panic!("not an error") };
    assert!(
        why.contains("rollback files cannot be written") && why.contains("createRollbackDataFiles"),
        "{why}"
    );
    p.rig.nodes[p.old].disk.set_full_folder(None);
    p.rig.nodes[p.old].boot();
    p.settle();
    let files = p.files();
    let kept: Vec<Document> = files.iter().flat_map(|(_, bytes)| documents(bytes)).collect();
    assert_eq!(kept, [doc! { "_id": 2 }]);
}

const STEPS: [&str; 4] = [
    "rollbackHangAfterTransitionToRollback",
    "rollbackHangAfterIncrementingRollbackId",
    "rollbackHangAfterWritingRollbackFiles",
    "rollbackHangAfterRecoveringToStable",
];

#[test]
fn a_member_in_rollback_ends_operations_and_refuses_reads() {
    let mut undone = Document::new();
    let p = Parted::after(
        4,
        |rig, p| drop(rig.ok(p, insert(1, w(3)))),
        |rig, old| {
            let many: Vec<Bson> = (10..40).map(|i| doc! { "_id": i }.into()).collect();
            let mut bulk = doc! { "insert": "c", "writeConcern": w(1) };
            bulk.push("documents", many);
            undone = rig.ok(old, bulk);
        },
        |rig, new| drop(rig.ok(new, insert(3, majority()))),
    );
    let (rig, old) = (&p.rig, p.old);
    rig.until("the old primary to step down", |rig| !rig.is_primary(old));
    let cursor = rig.ok(old, anywhere(doc! { "find": "c", "batchSize": 2 }));
    // It waits for what only this member has to be committed.
    let mut causal = anywhere(doc! { "find": "c" });
    let mut concern = doc! { "level": "majority" };
    concern.push("afterClusterTime", undone.get("operationTime").cloned().unwrap());
    causal.push("readConcern", concern);
    let waiting = rig.start(old, causal);
    rig.wait_ms(500);
    assert!(waiting.answer().is_none());
    switch(rig, old, STEPS[0], true);
    rig.heal();
    rig.until("the rollback", |rig| hangs_at(rig, old, STEPS[0]));
    assert_eq!(number(&rig.status(old), "myState"), 9);
    assert_eq!(code(&waiting.answer().expect("it has ended")), 11602);
    let hello = rig.hello(old);
    let is = |field: &str| hello.get(field).is_some_and(Bson::is_truthy);
    assert!(!is("isWritablePrimary") && !is("secondary"), "{hello:?}");
    for mut read in [
        find("local"),
        anywhere(doc! { "count": "c" }),
        anywhere(doc! { "find": "oplog.rs", "$db": "local" }),
    ] {
        read.push("maxTimeMS", 1000);
        assert_eq!(code(&rig.ask(old, read)), 13436);
    }
    let more = doc! { "getMore": number(&cursor, "cursor.id"), "collection": "c" };
    assert!([43, 13436].contains(&code(&rig.ask(old, more))));
    assert_eq!(code(&rig.ask(old, insert(4, w(1)))), 10107);
    switch(rig, old, STEPS[0], false);
    p.settle();
    assert_eq!(ids(&rig.ok(old, find("local"))), [1, 3]);
    let status = rig.admin(old, doc! { "serverStatus": 1 });
    let killed = number(&status, "metrics.repl.stateTransition.userOperationsKilled");
    let last = at(&status, "metrics.repl.stateTransition.lastStateTransition").and_then(Bson::as_str);
    assert_eq!((last, killed), (Some("rollback"), 1));
}

#[test]
fn each_rollback_has_a_number_that_lasts_and_those_who_follow_notice_it() {
    let rig = Rig::of(5, 5);
    let old = rig.primary();
    let rest = rig.others(old);
    let (friend, rest) = (rest[0], &rest[1..]);
    rig.ok(old, insert(1, w(5)));
    rig.admin(friend, doc! { "replSetSyncFrom": rig.nodes[old].addr() });
    rig.until("the pair", |rig| rig.source_of(friend) == Some(old));
    let before = (rbid(&rig, old), rbid(&rig, friend));
    rest.iter().for_each(|i| [old, friend].into_iter().for_each(|lost| rig.part(*i, lost)));
    rig.ok(old, insert(2, w(2)));
    let elected = |rig: &Rig| rest.iter().copied().find(|i| rig.is_primary(*i));
    rig.until("another primary", |rig| elected(rig).is_some());
    let new = elected(&rig).unwrap();
    rig.ok(new, insert(3, majority()));
    rig.heal();
    rig.until("one history", |rig| same(rig, old, new) && same(rig, friend, new));
    assert_eq!((rbid(&rig, old), rbid(&rig, friend)), (before.0 + 1, before.1 + 1));
    // Asked later, and after a power cut.
    let mut rig = rig;
    rig.wait_ms(1000);
    rig.nodes[old].lose_power();
    rig.nodes[old].boot();
    rig.until("it is back", |rig| same(rig, old, new));
    assert_eq!(rbid(&rig, old), before.0 + 1);
}

#[test]
fn the_common_point_is_where_the_longest_common_prefix_ends() {
    for seed in 0..12u64 {
        // Few and many, on both sides, over and under what is asked for at once.
        let size = |salt: u64| {
            let x = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left((salt * 13) as u32);
            let max = [3, 40, 2500][(x % 3) as usize];
            1 + (x >> 7) as i32 % max
        };
        let p = Parted::after(
            100 + seed,
            |rig, p| drop(rig.ok(p, bulk(0, size(1).abs().max(1), w(3)))),
            |rig, old| drop(rig.ok(old, bulk(10_000, size(2).abs().max(1), w(1)))),
            |rig, new| drop(rig.ok(new, bulk(20_000, size(3).abs().max(1), majority()))),
        );
        let (mut mine, mut theirs) = (log_of(&p.rig, p.old), log_of(&p.rig, p.new));
        // The log of a member that came by an initial sync may begin later.
        let from = mine[0].0.max(theirs[0].0);
        mine.retain(|(at, _)| *at >= from);
        theirs.retain(|(at, _)| *at >= from);
        let prefix = mine.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        p.heal_and_settle();
        let status = p.rig.admin(p.old, doc! { "serverStatus": 1 });
        let found = at(&status, "metrics.repl.rollback.lastCommonPoint").cloned();
        assert_eq!(found, Some(Bson::Timestamp(mine[prefix - 1].0)), "seed {seed}");
        assert_eq!(number_of(&status, "lastEntriesRolledBack"), (mine.len() - prefix) as i64, "seed {seed}");
    }
}

pub(crate) fn retryable(mut command: Document, session: u8, number: i64) -> Document {
    let id = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![session; 16] });
    command.push("lsid", doc! { "id": id });
    command.push("txnNumber", number);
    command
}
/// A statement of session 9's transaction of this number.
pub(crate) fn within(command: Document, number: i64, start: bool) -> Document {
    let mut command = retryable(command, 9, number);
    command.push("autocommit", false);
    if start {
        command.push("startTransaction", true);
    }
    command
}
/// Adds one to document 1, as the statement of this number.
pub(crate) fn add_one(statement: i32, concern: Document) -> Document {
    let mut c = doc! { "update": "c" };
    c.push("updates", vec![Bson::from(doc! { "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } })]);
    c.push("stmtIds", vec![Bson::from(statement)]);
    c.push("writeConcern", concern);
    c
}
fn counted(rig: &Rig, i: usize) -> i64 {
    number(&rig.ok(i, find("local")), "cursor.firstBatch.0.n")
}
#[test]
pub(crate) fn a_rolled_back_statement_runs_again_and_one_that_was_kept_does_not() {
    let p = Parted::after(
        6,
        |rig, p| {
            rig.ok(p, insert(1, w(3)));
            rig.ok(p, retryable(add_one(0, w(3)), 7, 1));
            rig.ok(p, retryable(add_one(0, w(3)), 8, 4));
        },
        |rig, old| {
            rig.ok(old, retryable(add_one(1, w(1)), 7, 1));
            // A newer number: the older one must be known again afterwards.
            rig.ok(old, retryable(add_one(0, w(1)), 8, 5));
            assert_eq!(counted(rig, old), 4);
        },
        |rig, new| drop(rig.ok(new, insert(3, majority()))),
    );
    p.heal_and_settle();
    let (rig, old) = (&p.rig, p.old);
    assert_eq!(counted(rig, old), 2);
    make_primary(rig, old);
    rig.ok(old, retryable(add_one(0, majority()), 7, 1));
    rig.ok(old, retryable(add_one(0, majority()), 8, 4));
    assert_eq!(counted(rig, old), 2, "kept, so not run again");
    rig.ok(old, retryable(add_one(1, majority()), 7, 1));
    rig.ok(old, retryable(add_one(0, majority()), 8, 5));
    assert_eq!(counted(rig, old), 4, "undone, so run again");
}

/// A follower applies three statements of one session in one batch; only the first is kept.
#[test]
fn statements_that_were_applied_together_are_known_one_by_one_after_a_rollback() {
    let rig = Rig::of(7, 5);
    let old = rig.primary();
    let rest = rig.others(old);
    let (friend, rest) = (rest[0], &rest[1..]);
    rig.ok(old, insert(1, w(5)));
    rig.admin(friend, doc! { "replSetSyncFrom": rig.nodes[old].addr() });
    rig.until("the pair", |rig| rig.source_of(friend) == Some(old));
    switch(&rig, friend, "rsSyncApplyStop", true);
    rig.ok(old, retryable(add_one(0, majority()), 7, 1));
    rig.wait_ms(1000);
    rest.iter().for_each(|i| [old, friend].into_iter().for_each(|lost| rig.part(*i, lost)));
    rig.ok(old, retryable(add_one(1, w(1)), 7, 1));
    rig.ok(old, retryable(add_one(2, w(1)), 7, 1));
    rig.wait_ms(500);
    switch(&rig, friend, "rsSyncApplyStop", false);
    rig.until("the whole batch", |rig| {
        at(&rig.ask(friend, find("local")), "cursor.firstBatch.0.n").and_then(Bson::as_i64) == Some(3)
    });
    let elected = |rig: &Rig| rest.iter().copied().find(|i| rig.is_primary(*i));
    rig.until("another primary", |rig| elected(rig).is_some());
    let new = elected(&rig).unwrap();
    rig.ok(new, insert(3, majority()));
    rig.heal();
    rig.until("one history", |rig| same(rig, old, new) && same(rig, friend, new));
    make_primary(&rig, friend);
    for statement in 0..3 {
        rig.ok(friend, retryable(add_one(statement, majority()), 7, 1));
    }
    assert_eq!(counted(&rig, friend), 3, "the first was there already");
}

#[test]
fn definitions_that_were_changed_alone_are_as_they_were() {
    let count = |rig: &Rig, i, name: &str| number(&rig.ok(i, anywhere(doc! { "count": name })), "n");
    let put = |rig: &Rig, i, name: &str, id: i32, concern| {
        rig.ok(i, doc! { "insert": name, "documents": [{ "_id": id, "a": id }], "writeConcern": concern });
    };
    let index = |name: &str, field: &str| {
        let mut key = Document::new();
        key.push(field, 1);
        let mut spec = doc! { "name": field };
        spec.push("key", key);
        let mut c = doc! { "createIndexes": name };
        c.push("indexes", vec![Bson::from(spec)]);
        c.push("writeConcern", doc! { "w": 1 });
        c.push("commitQuorum", 0);
        c
    };
    let p = Parted::after(
        8,
        |rig, p| {
            for name in ["dropped", "again", "renamed", "indexed", "target"] {
                put(rig, p, name, 1, w(3));
                put(rig, p, name, 2, w(3));
            }
            rig.ok(p, doc! { "createIndexes": "indexed", "indexes": [{ "key": { "b": 1 }, "name": "b" }], "writeConcern": w(3), "commitQuorum": "votingMembers" });
            rig.wait_ms(500);
        },
        |rig, old| {
            rig.ok(old, doc! { "drop": "dropped", "writeConcern": { "w": 1 } });
            rig.ok(old, doc! { "drop": "again", "writeConcern": { "w": 1 } });
            put(rig, old, "again", 7, w(1));
            rig.ok(
                old,
                doc! { "renameCollection": "test.renamed", "to": "test.target", "dropTarget": true,
                "writeConcern": { "w": 1 }, "$db": "admin" },
            );
            rig.ok(old, index("indexed", "a"));
            put(rig, old, "indexed", 3, w(1));
            rig.ok(old, doc! { "dropIndexes": "indexed", "index": "b", "writeConcern": { "w": 1 } });
            put(rig, old, "only_here", 1, w(1));
            rig.admin(
                old,
                doc! { "setDefaultRWConcern": 1, "defaultReadConcern": { "level": "majority" },
                "writeConcern": { "w": 1 } },
            );
        },
        |rig, new| drop(rig.ok(new, insert(3, majority()))),
    );
    p.heal_and_settle();
    let (rig, old) = (&p.rig, p.old);
    for name in ["dropped", "again", "renamed", "indexed", "target"] {
        assert_eq!(count(rig, old, name), 2, "{name}");
        let checked =
            rig.ok(old, anywhere(doc! { "validate": name, "full": true, "enforceFastCount": true }));
        assert!(checked.get("valid").is_some_and(Bson::is_truthy), "{checked:?}");
    }
    let listed = rig.ok(old, anywhere(doc! { "listIndexes": "indexed" }));
    let names = at(&listed, "cursor.firstBatch").and_then(Bson::as_array).unwrap();
    let names: Vec<_> = names.iter().filter_map(|i| i.as_doc()?.get("name")?.as_str()).collect();
    assert_eq!(names, ["_id_", "b"]);
    let there = rig.ok(old, anywhere(doc! { "listCollections": 1, "filter": { "name": "only_here" } }));
    assert_eq!(at(&there, "cursor.firstBatch").and_then(Bson::as_array).map(<[Bson]>::len), Some(0));
    // Services are told: the default that was set alone is forgotten.
    let default = rig.admin(old, doc! { "getDefaultRWConcern": 1, "inMemory": true });
    assert_eq!(at(&default, "defaultReadConcern.level").and_then(Bson::as_str), Some("local"), "{default:?}");
    // Not carried out later either.
    rig.wait(std::time::Duration::from_secs(400));
    assert!(same(rig, old, p.new));
    assert_eq!(count(rig, old, "dropped"), 2);
}

#[test]
fn a_crash_at_any_step_of_a_rollback_ends_in_the_same_history() {
    for (at, step) in STEPS.into_iter().enumerate() {
        let mut p = Parted::usual(20 + at as u64);
        switch(&p.rig, p.old, step, true);
        p.rig.heal();
        p.rig.until(step, |rig| hangs_at(rig, p.old, step));
        p.rig.nodes[p.old].lose_power();
        p.rig.nodes[p.old].boot();
        p.settle();
        assert_eq!(ids(&p.rig.ok(p.old, find("local"))), [1, 3], "{step}");
    }
}

/// The disk fails at the n-th sync of a rollback: the process ends, power is lost, and the next one finds its way.
#[test]
fn a_failed_sync_in_a_rollback_ends_the_process_and_the_next_one_finds_the_same_history() {
    let mut ended = 0;
    for n in 0..12 {
        let mut p = Parted::usual(40 + n);
        p.rig.wait_ms(2000);
        p.rig.nodes[p.old].disk.fail_sync_in(n);
        p.rig.heal();
        p.rig.until("an end", |rig| rig.nodes[p.old].exit().is_some() || same(rig, p.old, p.new));
        ended += u32::from(p.rig.nodes[p.old].exit().is_some());
        p.rig.nodes[p.old].lose_power();
        p.rig.nodes[p.old].boot();
        p.settle();
        assert_eq!(ids(&p.rig.ok(p.old, find("local"))), [1, 3], "sync {n}");
    }
    assert!(ended >= 5, "{ended}");
}

/// A member copies the set's data from a primary that is alone, which then is undone: its history begins too late for a
/// rollback.
fn copied_too_late(seed: u64) -> (Rig, [usize; 3]) {
    let mut rig = Rig::of(seed, 5);
    let old = rig.primary();
    let rest = rig.others(old);
    let (fresh, rest) = (rest[0], rest[1..].to_vec());
    rig.ok(old, insert(1, w(5)));
    rig.nodes[fresh].lose_power();
    rig.nodes[fresh].disk = std::sync::Arc::new(pando_sim::FaultyDisk::new(seed + 900));
    rest.iter().for_each(|i| [old, fresh].into_iter().for_each(|lost| rig.part(*i, lost)));
    rig.ok(old, insert(2, w(1)));
    rig.nodes[fresh].boot();
    rig.until("an initial sync", |rig| {
        let found = rig.ask(fresh, find("local"));
        found.get("ok").is_some_and(Bson::is_truthy) && ids(&found) == [1, 2]
    });
    let elected = |rig: &Rig| rest.iter().copied().find(|i| rig.is_primary(*i));
    rig.until("another primary", |rig| elected(rig).is_some());
    let new = elected(&rig).unwrap();
    rig.ok(new, insert(3, majority()));
    (rig, [old, fresh, new])
}

#[test]
fn a_member_whose_history_begins_after_the_common_point_copies_the_set_again() {
    let (rig, [old, fresh, new]) = copied_too_late(60);
    rig.world.watch_lines(&[9100020]);
    rig.heal();
    rig.until("one history", |rig| same(rig, old, new) && same(rig, fresh, new));
    let told = rig.world.take_lines();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(ids(&rig.ok(fresh, find("local"))), [1, 3]);
    assert_eq!(rig.nodes[fresh].boots(), 2, "no operator was needed");
    let kept: Vec<String> =
        rig.nodes[fresh].disk.paths().into_iter().filter(|p| p.ends_with(".bson")).collect();
    assert_eq!(kept.len(), 1, "what it had and nobody else has: {kept:?}");
    // It rolls back as everybody does from then on, and is part of majorities.
    make_primary(&rig, fresh);
    rig.ok(fresh, insert(5, w(5)));
}

/// Up to the moment at which the watched line is written.
fn wait_for_line(rig: &Rig) {
    let mut waited = 0;
    while rig.world.take_lines().is_empty() {
        assert!(waited < 120_000, "it does not come");
        rig.wait_ms(1);
        waited += 1;
    }
}

#[test]
fn a_crash_while_a_member_gives_its_data_up_ends_in_a_whole_copy() {
    for n in 0..10 {
        let (mut rig, [old, fresh, new]) = copied_too_late(70 + n);
        rig.world.watch_lines(&[9100020]);
        rig.heal();
        wait_for_line(&rig);
        rig.nodes[fresh].disk.fail_sync_in(n);
        rig.until("an end", |rig| rig.nodes[fresh].exit().is_some() || same(rig, fresh, new));
        rig.nodes[fresh].lose_power();
        rig.nodes[fresh].boot();
        rig.until("one history", |rig| same(rig, old, new) && same(rig, fresh, new));
        assert_eq!(ids(&rig.ok(fresh, find("local"))), [1, 3], "sync {n}");
    }
}

/// It had said to hold an entry that the set counts on: nobody without it gets its vote, now or later.
#[test]
fn a_member_that_gave_its_data_up_votes_as_if_it_still_had_what_it_promised() {
    let (mut rig, [_, fresh, new]) = copied_too_late(90);
    rig.world.watch_lines(&[9100020]);
    super::initial_sync::hang(&rig, fresh, "initialSyncHangBeforeCopyingDatabases", true);
    rig.heal();
    wait_for_line(&rig);
    rig.until("the copy", |rig| number(&rig.status(fresh), "myState") == 5);
    rig.isolate(fresh);
    for again in [false, true] {
        if again {
            rig.nodes[fresh].lose_power();
            rig.nodes[fresh].boot();
            rig.wait_ms(500);
        }
        let status = rig.status(fresh);
        assert_eq!(number(&status, "myState"), 5, "{status:?}");
        let config = rig.admin(new, doc! { "replSetGetConfig": 1 });
        let mut ask = doc! { "replSetRequestVotes": 1, "setName": "rs0", "dryRun": true, "term": 50_i64,
        "candidateIndex": new as i64, "configVersion": number(&config, "config.version"),
        "configTerm": number(&config, "config.term") };
        ask.push("lastAppliedOpTime", doc! { "ts": pando_base::Timestamp::new(1, 1), "t": 1_i64 });
        ask.push("$db", "admin");
        let answer = rig.ask(fresh, ask);
        assert!(!answer.get("voteGranted").is_some_and(Bson::is_truthy), "{answer:?}");
        let why = answer.get("reason").and_then(Bson::as_str).unwrap_or_default();
        assert!(why.contains("staler"), "{answer:?}");
    }
}

#[test]
fn a_rollback_of_more_time_than_allowed_ends_the_process() {
    let mut p = Parted::after(
        95,
        |rig, p| drop(rig.ok(p, insert(1, w(3)))),
        |rig, old| {
            rig.ok(old, insert(2, w(1)));
            rig.wait_ms(4000);
            rig.ok(old, insert(4, w(1)));
        },
        |rig, new| drop(rig.ok(new, insert(3, majority()))),
    );
    p.rig.admin(p.old, doc! { "setParameter": 1, "rollbackTimeLimitSecs": 2 });
    p.rig.heal();
    p.rig.until("the end of the process", |rig| rig.nodes[p.old].exit().is_some());
    let Some(Exit::Failed(why)) = p.rig.nodes[p.old].exit() else { panic!("not an error") };
    assert!(why.contains("rollbackTimeLimitSecs"), "{why}");
    assert!(p.files().is_empty(), "nothing was begun");
    p.rig.nodes[p.old].boot();
    p.settle();
}
