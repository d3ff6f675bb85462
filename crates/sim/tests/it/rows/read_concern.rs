//! What is read where, when members lag or are cut off.

use pando_bson::{Bson, doc};
use pando_sim::rig::{Rig, words::*};

#[test]
fn local_reads_give_the_newest_a_member_has() {
    let rig = Rig::of(21, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let s = rig.others(p)[0];
    rig.isolate(s);
    rig.ok(p, insert(2, w(2)));
    assert_eq!(ids(&rig.ok(p, find("local"))), [1, 2]);
    assert_eq!(ids(&rig.ok(s, find("local"))), [1]);
    rig.heal();
    rig.until("the secondary to apply it", |rig| ids(&rig.ok(s, find("local"))) == [1, 2]);
}

#[test]
fn majority_reads_wait_for_the_commit_point_and_survive_a_failover() {
    let rig = Rig::of(22, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, majority()));
    rig.isolate(p);
    let alone = rig.ask(p, insert(2, doc! { "w": 1 }));
    assert_eq!(number(&alone, "n"), 1);
    assert_eq!(ids(&rig.ok(p, find("majority"))), [1]);
    assert_eq!(ids(&rig.ok(p, find("local"))), [1, 2]);
    rig.until("another primary", |rig| rig.others(p).into_iter().any(|i| rig.is_primary(i)));
    let next = rig.others(p).into_iter().find(|i| rig.is_primary(*i)).unwrap();
    // What it knew to be committed, and with the first entry of its term everything that was.
    rig.until("the committed view", |rig| ids(&rig.ok(next, find("majority"))) == [1]);
    rig.heal();
    rig.until("one history", |rig| {
        let found = rig.ask(p, find("local"));
        found.get("ok").is_some_and(Bson::is_truthy) && ids(&found) == [1]
    });
}

#[test]
fn majority_reads_come_back_after_a_restart() {
    let mut rig = Rig::of(23, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let s = rig.others(p)[0];
    rig.nodes[s].kill();
    rig.wait_ms(500);
    rig.nodes[s].boot();
    rig.until("a majority read of the restarted member", |rig| {
        let found = rig.ask(s, find("majority"));
        found.get("ok").is_some_and(Bson::is_truthy) && ids(&found) == [1]
    });
}

/// Of a member that has just started nobody knows yet what is committed: the question waits, without an error, and is
/// answered when that is known.
#[test]
fn a_majority_read_waits_for_a_snapshot() {
    let mut rig = Rig::of(28, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    for i in 0..3 {
        rig.nodes[i].kill();
    }
    let s = rig.others(p)[0];
    rig.isolate(s);
    rig.nodes[s].boot();
    rig.until("a member that serves reads", |rig| {
        rig.ask(s, find("local")).get("ok").is_some_and(Bson::is_truthy)
    });
    let waiting = rig.start(s, find("majority"));
    rig.wait_ms(5_000);
    assert!(waiting.answer().is_none(), "{:?}", waiting.answer());
    for i in rig.others(s) {
        rig.nodes[i].boot();
    }
    rig.heal();
    rig.until("the answer", |_| waiting.answer().is_some());
    assert_eq!(ids(&waiting.answer().unwrap()), [1], "{:?}", waiting.answer());
}

#[test]
fn a_stale_primary_answers_no_linearizable_read() {
    let rig = Rig::of(24, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let ask = doc! { "find": "c", "readConcern": { "level": "linearizable" }, "maxTimeMS": 3000 };
    assert_eq!(ids(&rig.ok(p, ask.clone())), [1]);
    rig.isolate(p);
    let stale = rig.start(p, ask.clone());
    rig.wait_ms(2000);
    assert!(stale.answer().is_none(), "a minority cannot know");
    rig.until("an error", |_| stale.answer().is_some());
    assert_eq!(code(&stale.answer().unwrap()), 50);
    rig.until("another primary", |rig| rig.others(p).into_iter().any(|i| rig.is_primary(i)));
    let s = rig.others(p).into_iter().find(|i| !rig.is_primary(*i)).unwrap();
    let mut elsewhere = ask;
    elsewhere.push("$readPreference", doc! { "mode": "secondaryPreferred" });
    assert_eq!(code(&rig.ask(s, elsewhere)), 10107);
}

#[test]
fn snapshot_reads_repeat_at_their_time() {
    let rig = Rig::of(25, 3);
    let p = rig.primary();
    for i in 0..10 {
        rig.ok(p, insert(i, majority()));
    }
    let first = rig.ok(p, find("snapshot"));
    let at_time = at(&first, "cursor.atClusterTime").cloned().expect("the time of the snapshot");
    rig.ok(
        p,
        doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "x": 1 } }, "multi": true }],
        "writeConcern": { "w": "majority" } },
    );
    rig.ok(
        p,
        doc! { "delete": "c", "deletes": [{ "q": { "_id": 3 }, "limit": 1 }], "writeConcern": { "w": 3 } },
    );
    for i in [p, rig.others(p)[0]] {
        let mut concern = doc! { "level": "snapshot" };
        concern.push("atClusterTime", at_time.clone());
        let mut again = anywhere(doc! { "find": "c", "sort": { "_id": 1 } });
        again.push("readConcern", concern);
        let again = rig.ok(i, again);
        assert_eq!(at(&again, "cursor.firstBatch"), at(&first, "cursor.firstBatch"), "member {i}");
    }
    // Three members have written the delete; that a majority has it on disk may come a moment later.
    rig.until("the delete is committed", |rig| ids(&rig.ok(p, find("snapshot"))).len() == 9);
}

#[test]
fn a_lagging_member_waits_for_after_cluster_time_and_after_op_time() {
    let rig = Rig::of(26, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let s = rig.others(p)[0];
    rig.isolate(s);
    let done = rig.ok(p, insert(2, w(2)));
    let (time, op_time) = (at(&done, "opTime.ts").cloned().unwrap(), at(&done, "opTime").cloned().unwrap());
    let read = |name: &str, value: Bson| {
        let mut concern = doc! { "level": "local" };
        concern.push(name, value);
        let mut read = anywhere(doc! { "find": "c", "sort": { "_id": 1 } });
        read.push("readConcern", concern);
        // The set's time reaches a member with the question.
        read.push(
            "$clusterTime",
            doc! { "clusterTime": time.clone(), "signature": {
            "hash": Bson::Binary(pando_bson::Binary { subtype: 0, bytes: vec![0; 20] }), "keyId": 0_i64 } },
        );
        read
    };
    let mut of_the_next_term = op_time.as_doc().unwrap().clone();
    of_the_next_term.set("t", number(&of_the_next_term, "t") + 1);
    let mut of_the_next_term = read("afterOpTime", Bson::Document(of_the_next_term));
    of_the_next_term.push("maxTimeMS", 8000);
    let of_the_next_term = rig.start(s, of_the_next_term);
    let by_time = rig.start(s, read("afterClusterTime", time.clone()));
    let by_op_time = rig.start(s, read("afterOpTime", op_time));
    rig.wait_ms(2000);
    assert!(by_time.answer().is_none() && by_op_time.answer().is_none(), "{:?}", by_time.answer());
    rig.heal();
    rig.until("both answers", |_| by_time.answer().is_some() && by_op_time.answer().is_some());
    assert_eq!(ids(&by_time.answer().unwrap()), [1, 2]);
    assert_eq!(ids(&by_op_time.answer().unwrap()), [1, 2]);
    // The term comes first: an entry with that timestamp is not after it.
    rig.until("an end of the third", |_| of_the_next_term.answer().is_some());
    assert_eq!(code(&of_the_next_term.answer().unwrap()), 50);
}

#[test]
fn a_secondary_serves_only_reads_that_allow_it() {
    let rig = Rig::of(27, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    let s = rig.others(p)[0];
    let plain = doc! { "find": "c" };
    assert_eq!(code(&rig.ask(s, plain.clone())), 13435);
    for mode in ["secondary", "secondaryPreferred", "primaryPreferred", "nearest"] {
        let mut allowed = plain.clone();
        allowed.push("$readPreference", doc! { "mode": mode });
        assert_eq!(ids(&rig.ok(s, allowed)), [1], "{mode}");
    }
    let mut primary = plain;
    primary.push("$readPreference", doc! { "mode": "primary" });
    assert_eq!(code(&rig.ask(s, primary)), 13435);
}

/// A scan in many batches beside writers: nothing twice, and nothing missed that was there all the time.
#[test]
fn a_long_scan_survives_writers() {
    let rig = Rig::of(28, 1);
    let p = rig.primary();
    let docs: Vec<Bson> = (0..1000).map(|i| doc! { "_id": i, "n": 0 }.into()).collect();
    let mut many = doc! { "insert": "c" };
    many.push("documents", docs);
    rig.ok(p, many);
    let first = rig.ok(p, doc! { "find": "c", "batchSize": 20 });
    let mut seen = ids(&first);
    let mut id = number(&first, "cursor.id");
    let mut round = 0;
    while id != 0 {
        round += 1;
        // Multiples of seven come and go, all others change.
        rig.ok(p, doc! { "delete": "c", "deletes": [{ "q": { "_id": round * 7 }, "limit": 1 }] });
        rig.ok(
            p,
            doc! { "update": "c", "updates": [{ "q": {}, "u": { "$inc": { "n": 1 } }, "multi": true }] },
        );
        rig.ok(p, insert(10_000 - round, doc! { "w": 1 }));
        let mut more = doc! { "collection": "c", "batchSize": 20 };
        more.insert_at(0, "getMore", id);
        let more = rig.ok(p, more);
        let batch = at(&more, "cursor.nextBatch").and_then(Bson::as_array).unwrap();
        seen.extend(batch.iter().filter_map(|d| d.as_doc()?.get("_id")?.as_i64()));
        id = number(&more, "cursor.id");
    }
    let mut once = seen.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), seen.len(), "something was seen twice");
    assert!((0..1000).filter(|i| i % 7 != 0).all(|i| once.binary_search(&i).is_ok()), "something was missed");
}

#[test]
fn majority_reads_find_definitions_as_they_were_committed() {
    let rig = Rig::of(27, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, majority()));
    rig.isolate(p);
    let index = doc! { "key": { "x": 1 }, "name": "x" };
    rig.ok(p, doc! { "createIndexes": "c", "indexes": [index], "commitQuorum": 0, "writeConcern": w(1) });
    assert_eq!(ids(&rig.ok(p, find("majority"))), [1]);
    rig.ok(p, doc! { "drop": "c", "writeConcern": w(1) });
    assert_eq!(ids(&rig.ok(p, find("local"))), [0i64; 0]);
    assert_eq!(ids(&rig.ok(p, find("majority"))), [1], "nobody else has the drop");
    // Another one under the same name.
    rig.ok(p, insert(7, w(1)));
    assert_eq!(ids(&rig.ok(p, find("local"))), [7]);
    assert_eq!(ids(&rig.ok(p, find("majority"))), [1]);
    rig.ok(
        p,
        anywhere(doc! { "renameCollection": "test.c", "to": "test.d", "$db": "admin", "writeConcern": w(1) }),
    );
    assert_eq!(ids(&rig.ok(p, find("majority"))), [1]);
    let majority_count = anywhere(doc! { "count": "d", "query": {}, "readConcern": { "level": "majority" } });
    assert_eq!(number(&rig.ok(p, majority_count), "n"), 0);
    rig.heal();
    rig.until("what was committed", |rig| {
        let found = rig.ask(p, find("majority"));
        found.get("ok").is_some_and(Bson::is_truthy) && ids(&found) == [1]
    });
}
