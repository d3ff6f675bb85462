//! Index builds of a set: every member builds beside the writes, the primary waits for the votes that the commit quorum asks
//! for, and whoever is primary carries a build to its end.

use crate::rows::initial_sync::is_secondary;
use crate::rows::parted::{log_of, make_primary, switch};
use crate::rows::rollback::within;
use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Asked, Rig, words::*};

const HANG: &str = "hangAfterStartingIndexBuild";
const DOCS: i32 = 2_000;

fn filled(seed: u64) -> (Rig, usize) {
    let rig = Rig::of(seed, 3);
    let p = rig.primary();
    let docs: Vec<Bson> = (0..DOCS).map(|i| doc! { "_id": i, "a": i % 7, "u": i }.into()).collect();
    let mut insert = doc! { "insert": "c", "writeConcern": w(3) };
    insert.push("documents", docs);
    rig.ok(p, insert);
    (rig, p)
}
fn create(quorum: impl Into<Bson>) -> Document {
    let mut c = doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] };
    c.push("commitQuorum", quorum);
    c
}
fn set_quorum(quorum: impl Into<Bson>) -> Document {
    let mut c = doc! { "setIndexCommitQuorum": "c", "indexNames": ["a"] };
    c.push("commitQuorum", quorum);
    c
}
fn entries(rig: &Rig, i: usize) -> Vec<Document> {
    let found = rig.ok(i, anywhere(doc! { "find": "system.indexBuilds", "$db": "config" }));
    let batch = at(&found, "cursor.firstBatch").and_then(Bson::as_array).unwrap_or_default();
    batch.iter().filter_map(|d| d.as_doc().cloned()).collect()
}
fn voted(rig: &Rig, i: usize) -> usize {
    let ready = |e: &Document| e.get("commitReadyMembers").and_then(Bson::as_array).map_or(0, <[_]>::len);
    entries(rig, i).first().map_or(0, ready)
}
/// Names of the indexes, and whether some are unfinished.
fn indexes(rig: &Rig, i: usize) -> (usize, bool) {
    let listed = rig.ask(i, anywhere(doc! { "listIndexes": "c", "includeBuildUUIDs": true }));
    let all = at(&listed, "cursor.firstBatch").and_then(Bson::as_array).unwrap_or_default();
    (all.len(), all.iter().any(|d| d.as_doc().is_some_and(|d| d.contains("buildUUID"))))
}
fn is_ready(rig: &Rig, i: usize) -> bool {
    indexes(rig, i) == (2, false)
}
fn ready_and_valid_everywhere(rig: &Rig, docs: i64) {
    rig.until("the index everywhere", |rig| (0..rig.nodes.len()).all(|i| is_ready(rig, i)));
    rig.until("its document is gone", |rig| (0..rig.nodes.len()).all(|i| entries(rig, i).is_empty()));
    for i in 0..rig.nodes.len() {
        let valid = rig.ok(i, anywhere(doc! { "validate": "c", "full": true, "enforceFastCount": true }));
        assert!(valid.get("valid").is_some_and(Bson::is_truthy), "{valid:?}");
        assert_eq!(number(&valid, "keysPerIndex.a"), docs, "{valid:?}");
    }
}
fn entries_of_builds(rig: &Rig, i: usize) -> Vec<String> {
    let server = rig.nodes[i].server().expect("it runs");
    let mut cursor = server.storage.log().read(std::ops::Bound::Unbounded, false);
    let mut all = Vec::new();
    while let Some((_, entry)) = cursor.next().unwrap() {
        let o = pando_bson::RawDoc::trusted(&entry).get("o").and_then(|v| v.as_doc()).unwrap();
        let name = o.first().map_or("", |e| e.name()).to_owned();
        if name.ends_with("IndexBuild") {
            all.push(name);
        }
    }
    all
}
/// One that hangs on these members before it scans anything.
fn hung(rig: &Rig, p: usize, on: &[usize], quorum: impl Into<Bson>) -> Asked {
    on.iter().for_each(|i| switch(rig, *i, HANG, true));
    let asked = rig.start(p, create(quorum));
    let others: Vec<usize> = (0..3).filter(|i| !on.contains(i)).collect();
    rig.until("the build everywhere", |rig| (0..3).all(|i| indexes(rig, i) == (2, true)));
    rig.until("votes of the rest", |rig| voted(rig, p) == others.len());
    asked
}
fn write(rig: &Rig, p: usize, from: i32) {
    let docs: Vec<Bson> =
        (from..from + 50).map(|i| doc! { "_id": i, "a": [i, i + 1], "u": i }.into()).collect();
    let mut insert = doc! { "insert": "c", "writeConcern": w(3) };
    insert.push("documents", docs);
    rig.ok(p, insert);
    rig.ok(
        p,
        doc! { "delete": "c", "deletes": [{ "q": { "_id": from }, "limit": 1 }], "writeConcern": w(3) },
    );
}

#[test]
fn members_build_beside_their_appliers_and_the_primary_waits_for_their_votes() {
    let (rig, p) = filled(401);
    let slow = rig.others(p)[0];
    let asked = hung(&rig, p, &[slow], "votingMembers");
    // Applied everywhere, although one member has not begun to scan.
    write(&rig, p, 10_000);
    rig.wait_ms(3_000);
    assert!(asked.answer().is_none() && !is_ready(&rig, p));
    switch(&rig, slow, HANG, false);
    rig.until("the answer", |_| asked.answer().is_some());
    let done = asked.answer().unwrap();
    assert_eq!(at(&done, "commitQuorum").and_then(Bson::as_str), Some("votingMembers"), "{done:?}");
    ready_and_valid_everywhere(&rig, i64::from(DOCS) + 98);
    assert_eq!(entries_of_builds(&rig, slow), ["startIndexBuild", "commitIndexBuild"]);
}

#[test]
fn a_quorum_of_fewer_and_one_that_is_made_smaller_let_a_build_end() {
    let (rig, p) = filled(402);
    let slow = rig.others(p)[0];
    switch(&rig, slow, HANG, true);
    rig.ok(p, create("majority"));
    assert!(is_ready(&rig, p) && !is_ready(&rig, slow), "it has not begun");
    switch(&rig, slow, HANG, false);
    ready_and_valid_everywhere(&rig, i64::from(DOCS));
    for (seed, fewer) in [(403, 2), (404, 1)] {
        let (rig, p) = filled(seed);
        let slow = rig.others(p)[0];
        let asked = hung(&rig, p, &[slow], "votingMembers");
        rig.wait_ms(2_000);
        assert!(asked.answer().is_none());
        assert_eq!(code(&rig.ask(p, set_quorum(0))), 2);
        assert_eq!(code(&rig.ask(p, set_quorum(4))), 278);
        assert_eq!(code(&rig.ask(p, set_quorum("none of these"))), 79);
        let mut other = set_quorum(1);
        other.set("indexNames", vec![Bson::from("b")]);
        assert_eq!(code(&rig.ask(p, other)), 27);
        rig.ok(p, set_quorum(fewer));
        rig.until("the answer", |_| asked.answer().is_some());
        assert!(is_ready(&rig, p), "{:?}", asked.answer());
        assert!(!is_ready(&rig, slow), "it has not begun");
        switch(&rig, slow, HANG, false);
        ready_and_valid_everywhere(&rig, i64::from(DOCS));
    }
}

#[test]
fn nobody_is_asked_where_the_quorum_is_off() {
    let (rig, p) = filled(405);
    rig.others(p).into_iter().for_each(|i| switch(&rig, i, HANG, true));
    let done = rig.ok(p, create(0));
    assert_eq!(number(&done, "commitQuorum"), 0);
    rig.others(p).into_iter().for_each(|i| switch(&rig, i, HANG, false));
    ready_and_valid_everywhere(&rig, i64::from(DOCS));
}

#[test]
fn a_build_outlives_the_office_of_its_primary() {
    for (seed, dies) in [(406, false), (407, true)] {
        let (mut rig, p) = filled(seed);
        let next = rig.others(p)[0];
        let asked = hung(&rig, p, &[p], "votingMembers");
        if dies {
            rig.nodes[p].lose_power();
        }
        make_primary(&rig, next);
        if dies {
            rig.nodes[p].boot();
            rig.until("the old primary", |rig| is_secondary(rig, p));
        } else {
            rig.until("the caller is told", |_| asked.answer().is_some());
            let told = asked.answer().unwrap();
            assert!([11602, 10107, 189].contains(&code(&told)), "{told:?}");
            assert!(!is_ready(&rig, next), "a vote is missing");
            switch(&rig, p, HANG, false);
        }
        write(&rig, next, 20_000);
        ready_and_valid_everywhere(&rig, i64::from(DOCS) + 98);
        assert_eq!(entries_of_builds(&rig, p), ["startIndexBuild", "commitIndexBuild"]);
    }
}

#[test]
fn a_build_goes_on_after_a_restart_of_a_member() {
    for seed in [408, 409] {
        let (mut rig, p) = filled(seed);
        let s = rig.others(p)[0];
        let asked = hung(&rig, p, &[s], "votingMembers");
        rig.nodes[s].lose_power();
        rig.ok(p, doc! { "insert": "c", "documents": [{ "_id": -1, "a": 5 }], "writeConcern": majority() });
        rig.nodes[s].boot();
        ready_and_valid_everywhere(&rig, i64::from(DOCS) + 1);
        rig.until("the answer", |_| asked.answer().is_some());
        assert_eq!(number(&asked.answer().unwrap(), "numIndexesAfter"), 2);
    }
}

#[test]
fn a_build_can_be_given_up_at_any_time() {
    let give_up: [(&str, fn(&Rig, usize)); 3] = [
        ("dropIndexes", |rig, p| {
            drop(rig.ok(p, doc! { "dropIndexes": "c", "index": "a", "writeConcern": w(3) }))
        }),
        ("drop", |rig, p| drop(rig.ok(p, doc! { "drop": "c", "writeConcern": w(3) }))),
        ("dropDatabase", |rig, p| drop(rig.ok(p, doc! { "dropDatabase": 1, "writeConcern": w(3) }))),
    ];
    for (seed, (name, give_up)) in (410..).zip(give_up) {
        let (rig, p) = filled(seed);
        let slow = rig.others(p)[0];
        let asked = hung(&rig, p, &[slow], "votingMembers");
        give_up(&rig, p);
        rig.until("the answer", |_| asked.answer().is_some());
        assert_eq!(code(&asked.answer().unwrap()), 276, "{name}: {:?}", asked.answer());
        rig.until("nothing is left", |rig| (0..3).all(|i| !indexes(rig, i).1 && entries(rig, i).is_empty()));
        assert_eq!(entries_of_builds(&rig, slow), ["startIndexBuild", "abortIndexBuild"]);
        let running = rig.nodes[slow].server().unwrap().access.maintenance().builds();
        assert!(running.is_empty(), "{name}: {running:?}");
        assert_eq!(log_of(&rig, slow).len(), log_of(&rig, p).len());
    }
}

#[test]
fn a_build_ends_with_the_operation_that_asked_for_it() {
    let (rig, p) = filled(414);
    let slow = rig.others(p)[0];
    switch(&rig, slow, HANG, true);
    let mut short = create("votingMembers");
    short.push("maxTimeMS", 2_000);
    let refused = rig.ask(p, short);
    assert_eq!(code(&refused), 50, "{refused:?}");
    rig.until("it is gone everywhere", |rig| (0..3).all(|i| indexes(rig, i) == (1, false)));
    switch(&rig, slow, HANG, false);
    rig.ok(p, create("votingMembers"));
    ready_and_valid_everywhere(&rig, i64::from(DOCS));
}

#[test]
fn duplicates_end_a_unique_build_on_every_member() {
    let (rig, p) = filled(415);
    rig.ok(p, doc! { "insert": "c", "documents": [{ "_id": -5, "u": 5 }], "writeConcern": w(3) });
    let unique =
        doc! { "createIndexes": "c", "indexes": [{ "key": { "u": 1 }, "name": "u", "unique": true }] };
    assert_eq!(code(&rig.ask(p, unique.clone())), 11000);
    rig.until("it is gone everywhere", |rig| (0..3).all(|i| indexes(rig, i) == (1, false)));
    rig.ok(p, doc! { "delete": "c", "deletes": [{ "q": { "_id": -5 }, "limit": 1 }] });
    rig.ok(p, unique);
    rig.until("the index everywhere", |rig| (0..3).all(|i| is_ready(rig, i)));
}

/// The collection is in use while an index is dropped that is being built: before the primary may have it alone it steps down.
#[test]
fn a_build_whose_abort_a_step_down_overtakes_has_all_votes() {
    for seed in [418, 419] {
        let (rig, p) = filled(seed);
        let others = rig.others(p);
        let asked = hung(&rig, p, &[0, 1, 2], "votingMembers");
        rig.ok(p, within(doc! { "insert": "c", "documents": [{ "_id": -1 }] }, 1, true));
        let drop = rig.start(p, doc! { "dropIndexes": "c", "index": "a" });
        rig.wait_ms(1_000);
        assert!(drop.answer().is_none(), "{:?}", drop.answer());
        make_primary(&rig, others[0]);
        rig.until("the callers are told", |_| asked.answer().is_some() && drop.answer().is_some());
        (0..3).for_each(|i| switch(&rig, i, HANG, false));
        write(&rig, others[0], 20_000);
        ready_and_valid_everywhere(&rig, i64::from(DOCS) + 98);
        assert_eq!(entries_of_builds(&rig, p), ["startIndexBuild", "commitIndexBuild"]);
    }
}

#[test]
fn a_member_that_cannot_make_its_part_ends_the_build_with_its_error() {
    // The primary that hears of it, or the one after it.
    for (seed, replaced) in [(420, false), (421, true)] {
        let (rig, mut p) = filled(seed);
        let bad = rig.others(p)[0];
        let mode = doc! { "mode": "alwaysOn", "data": { "error": 39 } }.to_raw();
        let server = rig.nodes[bad].server().unwrap();
        if replaced {
            let asked = hung(&rig, p, &rig.others(p), "votingMembers");
            rig.part(p, bad);
            server.instance.fail_points.configure("failIndexBuildWithError", &mode).unwrap();
            rig.until("it has failed", |_| {
                server.access.maintenance().builds().iter().any(|b| b.failed.is_some())
            });
            let old = p;
            p = rig.others(p)[1];
            make_primary(&rig, p);
            rig.heal();
            rig.until("the caller is told", |_| asked.answer().is_some());
            rig.until("the old one follows", |rig| is_secondary(rig, old));
        } else {
            server.instance.fail_points.configure("failIndexBuildWithError", &mode).unwrap();
            let refused = rig.ask(p, create("votingMembers"));
            assert_eq!(code(&refused), 276, "{refused:?}");
            let text = format!("{refused:?}");
            assert!(
                text.contains("voteAbortIndexBuild") && text.contains("failIndexBuildWithError"),
                "{text}"
            );
        }
        rig.until("nothing is left", |rig| {
            (0..3).all(|i| indexes(rig, i) == (1, false) && entries(rig, i).is_empty())
        });
        assert_eq!(entries_of_builds(&rig, bad), ["startIndexBuild", "abortIndexBuild"]);
        (0..3).for_each(|i| switch(&rig, i, HANG, false));
        switch(&rig, bad, "failIndexBuildWithError", false);
        rig.ok(p, create("votingMembers"));
        ready_and_valid_everywhere(&rig, i64::from(DOCS));
    }
}

#[test]
fn a_member_that_builds_no_indexes_has_those_on_id_alone() {
    let lazy = doc! { "buildIndexes": false, "priority": 0, "votes": 0 };
    let mut rig = Rig::with(422, &[doc! {}, doc! {}, lazy], doc! {});
    let p = rig.primary();
    rig.ok(p, doc! { "createIndexes": "e", "indexes": [{ "key": { "a": 1 }, "name": "a" }] });
    let docs: Vec<Bson> = (0..DOCS).map(|i| doc! { "_id": i, "a": i % 7 }.into()).collect();
    let mut insert = doc! { "insert": "c", "writeConcern": w(3) };
    insert.push("documents", docs);
    rig.ok(p, insert);
    assert_eq!(code(&rig.ask(p, create(3))), 278, "it is not counted on");
    // Nobody waits for its vote, and it has nothing to wait for.
    let mut wanted = create("votingMembers");
    wanted.push("writeConcern", w(3));
    rig.ok(p, wanted);
    write(&rig, p, 10_000);
    let without = |rig: &Rig| {
        assert_eq!(indexes(rig, 2), (1, false));
        assert!(rig.nodes[2].server().unwrap().access.maintenance().builds().is_empty());
        let e = rig.ok(2, anywhere(doc! { "listIndexes": "e" }));
        assert_eq!(at(&e, "cursor.firstBatch").and_then(Bson::as_array).map(<[_]>::len), Some(1));
        let valid = rig.ok(2, anywhere(doc! { "validate": "c", "full": true, "enforceFastCount": true }));
        assert!(valid.get("valid").is_some_and(Bson::is_truthy), "{valid:?}");
        assert_eq!(number(&rig.ok(2, anywhere(doc! { "count": "c" })), "n"), i64::from(DOCS) + 49);
    };
    without(&rig);
    rig.until("the others", |rig| is_ready(rig, 0) && is_ready(rig, 1));
    // The log is replayed before the configuration is known.
    rig.nodes[2].lose_power();
    rig.nodes[2].boot();
    // What it had not synced comes again.
    let all = |rig: &Rig| number(&rig.ok(2, anywhere(doc! { "count": "c" })), "n") == i64::from(DOCS) + 49;
    rig.until("it is back", |rig| is_secondary(rig, 2) && all(rig));
    without(&rig);
    // Copied once more, from a member that has them all.
    rig.admin(2, doc! { "resync": 1 });
    rig.wait_ms(2_000);
    rig.until("it is back", |rig| is_secondary(rig, 2) && all(rig));
    without(&rig);
    rig.ok(p, doc! { "dropIndexes": "c", "index": "a", "writeConcern": w(3) });
}

#[test]
fn a_build_that_only_an_old_primary_knew_goes_with_the_rollback() {
    let (rig, p) = filled(416);
    rig.isolate(p);
    let asked = rig.start(p, create("votingMembers"));
    rig.wait_ms(500);
    assert!(indexes(&rig, p).1, "begun");
    rig.until("another primary", |rig| rig.others(p).into_iter().any(|i| rig.is_primary(i)));
    let new = rig.others(p).into_iter().find(|i| rig.is_primary(*i)).unwrap();
    rig.ok(new, doc! { "insert": "c", "documents": [{ "_id": -1, "a": 1 }], "writeConcern": majority() });
    rig.heal();
    rig.until("it follows", |rig| is_secondary(rig, p) && indexes(rig, p) == (1, false));
    assert!(asked.answer().is_none_or(|a| code(&a) != 0));
    rig.ok(new, create("votingMembers"));
    ready_and_valid_everywhere(&rig, i64::from(DOCS) + 1);
}

#[test]
fn votes_are_written_down_and_strange_ones_are_refused() {
    let (rig, p) = filled(417);
    let slow = rig.others(p)[0];
    let asked = hung(&rig, p, &[slow], 3);
    let entry = entries(&rig, p).remove(0);
    let build = entry.get("_id").unwrap().clone();
    let vote = |build: Bson, host: &str| {
        let mut c = Document::new();
        c.push("voteCommitIndexBuild", build);
        c.push("hostAndPort", host);
        c.push("$db", "admin");
        c
    };
    let nobody = Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![9; 16] });
    assert_eq!(code(&rig.ask(p, vote(nobody, "a:1"))), 4);
    assert_eq!(code(&rig.ask(p, vote(build.clone(), "a:b"))), 9);
    assert_eq!(code(&rig.ask(p, vote(1.into(), "a:1"))), 14);
    // Written down, and not counted: it is no member.
    rig.ok(p, vote(build, "stranger:1"));
    assert_eq!(voted(&rig, p), 3);
    rig.wait_ms(1_000);
    assert!(asked.answer().is_none());
    assert_eq!(entry.get("commitQuorum"), Some(&Bson::Int32(3)));
    switch(&rig, slow, HANG, false);
    rig.until("the answer", |_| asked.answer().is_some());
    ready_and_valid_everywhere(&rig, i64::from(DOCS));
}
