//! A member comes to a running set by copying another member's files.

use super::initial_sync::{NEW, add, fill, hang, hash, is_marked, is_secondary, pair_and_one, sync_status};
use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};

fn by_files(rig: &Rig) {
    let server = rig.nodes[NEW].server().expect("a running member");
    server.instance.params.set_at_startup("initialSyncMethod", "fileCopyBased").unwrap();
}
/// What a supervisor does: the process ended to start again with other files.
fn start_again(rig: &mut Rig) {
    rig.until("the end of the process", |rig| rig.nodes[NEW].exit().is_some());
    assert!(matches!(rig.nodes[NEW].exit(), Some(pando_sim::Exit::Clean)), "{:?}", rig.nodes[NEW].exit());
    rig.nodes[NEW].boot();
}
/// The third member has the list of its source's files, and stands still before the first piece.
fn copying(seed: u64, documents: i32) -> (Rig, usize) {
    let (rig, p) = pair_and_one(seed);
    fill(&rig, p, "big", documents);
    by_files(&rig);
    hang(&rig, NEW, "initialSyncHangCopyingFiles", true);
    add(&rig, p, &doc! { "votes": 0, "priority": 0 });
    rig.until("the list of files", |rig| {
        sync_status(rig, NEW).is_some_and(|s| number(&s, "approxTotalDataSize") > 0)
    });
    (rig, p)
}
fn copied(rig: &Rig) -> i64 {
    sync_status(rig, NEW).map_or(0, |s| number(&s, "approxTotalBytesCopied"))
}
fn dozen(rig: &Rig, p: usize, from: i32) {
    for i in from..from + 12 {
        rig.ok(p, insert(i, w(2)));
    }
}

#[test]
fn a_member_made_of_copied_files_equals_its_source_and_follows() {
    let (mut rig, p) = pair_and_one(91);
    fill(&rig, p, "big", 3_000);
    let index = doc! { "createIndexes": "big", "indexes": [{ "key": { "pad": 1, "_id": -1 }, "name": "i" }] };
    rig.ok(p, index);
    rig.ok(p, doc! { "create": "capped", "capped": true, "size": 4096 });
    by_files(&rig);
    hang(&rig, NEW, "initialSyncHangCopyingFiles", true);
    add(&rig, p, &Document::new());
    rig.until("the list of files", |rig| {
        sync_status(rig, NEW).is_some_and(|s| number(&s, "approxTotalDataSize") > 0)
    });
    let status = sync_status(&rig, NEW).unwrap();
    assert_eq!(at(&status, "method").and_then(Bson::as_str), Some("fileCopyBased"));
    // The set goes on meanwhile, and the connections break.
    dozen(&rig, p, 100);
    let new = rig.nodes[NEW].machine();
    hang(&rig, NEW, "initialSyncHangCopyingFiles", false);
    rig.world.net.reset_connections(|a, b| (a == new || b == new) && a.0 < 30_000 && b.0 < 30_000);
    start_again(&mut rig);
    rig.until("a secondary", |rig| is_secondary(rig, NEW));
    dozen(&rig, p, 200);
    rig.until("its vote", |rig| !is_marked(rig, p));
    rig.ok(p, insert(1_000, w(3)));
    for source in 0..2 {
        assert_eq!(hash(&rig, source), hash(&rig, NEW));
    }
    // It is itself, not its source: its own place, vote and heirs.
    let me = rig.hello(NEW);
    assert_eq!(at(&me, "me").and_then(Bson::as_str), Some(rig.nodes[NEW].addr().as_str()));
    rig.until("an office of its own", |rig| {
        rig.ask(NEW, doc! { "replSetStepUp": 1, "$db": "admin" });
        rig.wait_ms(2_000);
        rig.is_primary(NEW)
    });
    rig.ok(NEW, insert(1_001, w(3)));
    let valid = rig.ok(NEW, doc! { "validate": "big" });
    assert!(at(&valid, "valid").is_some_and(Bson::is_truthy), "{valid:?}");
}

#[test]
fn a_copy_of_files_that_is_cut_goes_on_with_the_chunk_that_was_on_its_way() {
    let (mut rig, p) = copying(92, 1_000);
    let total = number(&sync_status(&rig, NEW).unwrap(), "approxTotalDataSize");
    rig.isolate(NEW);
    let new = rig.nodes[NEW].machine();
    rig.world.net.reset_connections(|a, b| (a == new || b == new) && a.0 < 30_000 && b.0 < 30_000);
    hang(&rig, NEW, "initialSyncHangCopyingFiles", false);
    rig.wait_ms(8_000);
    assert!(copied(&rig) < total && rig.nodes[NEW].exit().is_none());
    rig.heal();
    let mut last = None;
    rig.until("the end", |rig| {
        last = sync_status(rig, NEW).or(last.take());
        rig.nodes[NEW].exit().is_some()
    });
    assert_eq!(number(&last.unwrap(), "failedInitialSyncAttempts"), 0);
    start_again(&mut rig);
    rig.until("a secondary", |rig| is_secondary(rig, NEW));
    rig.ok(p, insert(5, w(3)));
    assert_eq!(hash(&rig, p), hash(&rig, NEW));
}

/// Whoever is started again holds no files for anybody: they are asked for anew, not waited for.
#[test]
fn a_copy_of_files_whose_source_was_started_again_begins_again() {
    let (mut rig, _) = copying(97, 500);
    for i in 0..2 {
        rig.nodes[i].kill();
        rig.nodes[i].boot();
    }
    rig.primary();
    hang(&rig, NEW, "initialSyncHangCopyingFiles", false);
    start_again(&mut rig);
    rig.until("a secondary", |rig| is_secondary(rig, NEW));
    let p = rig.primary();
    rig.ok(p, insert(5, w(3)));
    assert_eq!(hash(&rig, p), hash(&rig, NEW));
}

#[test]
fn a_member_killed_while_it_copies_files_begins_again() {
    let (mut rig, p) = copying(93, 500);
    rig.nodes[NEW].lose_power();
    rig.nodes[NEW].boot();
    // By the other method this time: what was staged is gone.
    rig.until("a secondary", |rig| is_secondary(rig, NEW));
    rig.ok(p, insert(5, w(3)));
    assert_eq!(hash(&rig, p), hash(&rig, NEW));
}

#[test]
fn a_source_that_gives_no_files_is_copied_from_logically() {
    let (rig, p) = pair_and_one(94);
    fill(&rig, p, "big", 500);
    for source in 0..2 {
        // As many copies as a member bears.
        for _ in 0..4 {
            rig.admin(source, doc! { "_openBackup": 1 });
        }
    }
    by_files(&rig);
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", true);
    add(&rig, p, &doc! { "votes": 0, "priority": 0 });
    rig.until("the copy", super::initial_sync::has_copied);
    let status = sync_status(&rig, NEW).unwrap();
    assert_eq!(at(&status, "method").and_then(Bson::as_str), Some("logical"));
    hang(&rig, NEW, "initialSyncHangAfterDataCloning", false);
    rig.until("a secondary", |rig| is_secondary(rig, NEW));
    assert_eq!(hash(&rig, p), hash(&rig, NEW));
}

/// A voter copies its data anew; what it votes for meanwhile, and is told of the set, outlives the copy.
#[test]
fn a_copy_of_files_forgets_neither_a_vote_nor_a_configuration_made_meanwhile() {
    let mut rig = Rig::of(95, 3);
    let p = rig.primary();
    rig.ok(p, insert(0, w(3)));
    fill(&rig, p, "big", 500);
    if p == NEW {
        rig.admin(p, doc! { "replSetStepDown": 60 });
        rig.until("another primary", |rig| rig.primary_now().is_some_and(|now| now != NEW));
    }
    let p = rig.primary();
    by_files(&rig);
    hang(&rig, NEW, "initialSyncHangAfterKeepingOwnState", true);
    hang(&rig, NEW, "initialSyncHangCopyingFiles", true);
    rig.admin(NEW, doc! { "resync": 1 });
    rig.until("the list of files", |rig| {
        sync_status(rig, NEW).is_some_and(|s| number(&s, "approxTotalDataSize") > 0)
    });
    let mut config = rig.next_config(p);
    config.set("settings", doc! { "heartbeatIntervalMillis": 1900 });
    rig.insist(p, &doc! { "replSetReconfig": config, "$db": "admin" });
    let version =
        |rig: &Rig, i: usize| number(&rig.admin(i, doc! { "replSetGetConfig": 1 }), "config.version");
    let told = version(&rig, p);
    rig.until("the configuration", |rig| version(rig, NEW) == told);
    let term = number(&rig.status(NEW), "term") + 1_000;
    let ask = |rig: &Rig, candidate: i64, term: i64| {
        let config = rig.admin(NEW, doc! { "replSetGetConfig": 1 });
        rig.ask(
            NEW,
            doc! { "replSetRequestVotes": 1, "setName": "rs0", "dryRun": false, "term": term,
            "candidateIndex": candidate, "configVersion": number(&config, "config.version"),
            "configTerm": number(&config, "config.term"),
            "lastAppliedOpTime": { "ts": pando_base::Timestamp::new(u32::MAX, 1), "t": term - 1 }, "$db": "admin" },
        )
    };
    let granted = ask(&rig, 0, term);
    assert!(granted.get("voteGranted").is_some_and(Bson::is_truthy), "{granted:?}");
    hang(&rig, NEW, "initialSyncHangCopyingFiles", false);
    // Once what it keeps of itself has been read, it promises nothing any more.
    rig.until("the last moment", |rig| {
        let server = rig.nodes[NEW].server().expect("a running member");
        let point = server.instance.fail_points.get("initialSyncHangAfterKeepingOwnState");
        point.is_some_and(|p| p.times_entered() > 0)
    });
    let refused = ask(&rig, 0, term + 1_000_000);
    assert_eq!(code(&refused), 1, "{refused:?}");
    rig.isolate(NEW);
    hang(&rig, NEW, "initialSyncHangAfterKeepingOwnState", false);
    start_again(&mut rig);
    rig.until("an answer", |rig| rig.hello(NEW).contains("ok"));
    let again = ask(&rig, 1, term);
    assert!(!again.get("voteGranted").is_some_and(Bson::is_truthy), "{again:?}");
    assert!(version(&rig, NEW) >= told);
    rig.heal();
    rig.until("a secondary or a primary", |rig| is_secondary(rig, NEW) || rig.is_primary(NEW));
}

/// What it voted and promised after its backup is not known any better because it has other files now.
#[test]
fn a_copy_of_files_forgets_not_that_the_member_came_from_a_backup() {
    const VOTES_AGAIN: i32 = 9_100_029;
    for (seed, restored) in [(97, true), (98, false)] {
        let (mut rig, p) = pair_and_one(seed);
        fill(&rig, p, "big", 300);
        let mark = |rig: &Rig, i: usize| {
            let maintenance = rig.nodes[i].server().expect("it runs").access.maintenance();
            maintenance.note_restored().unwrap();
        };
        by_files(&rig);
        hang(&rig, NEW, "initialSyncHangCopyingFiles", true);
        if restored {
            mark(&rig, NEW);
        } else {
            // The sources did, and their files say so.
            (0..2).for_each(|i| mark(&rig, i));
        }
        add(&rig, p, &Document::new());
        rig.until("the list of files", |rig| {
            sync_status(rig, NEW).is_some_and(|s| number(&s, "approxTotalDataSize") > 0)
        });
        rig.world.watch_lines(&[VOTES_AGAIN]);
        hang(&rig, NEW, "initialSyncHangCopyingFiles", false);
        start_again(&mut rig);
        rig.until("a secondary", |rig| is_secondary(rig, NEW));
        dozen(&rig, p, 200);
        rig.wait_ms(3_000);
        let new = rig.nodes[NEW].machine();
        assert_eq!(rig.world.take_lines().iter().any(|l| l.machine == new && l.id == VOTES_AGAIN), restored);
        assert!(!rig.nodes[NEW].server().unwrap().access.maintenance().is_restored().unwrap());
    }
}
