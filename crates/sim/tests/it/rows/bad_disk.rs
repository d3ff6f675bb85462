//! Disks that are full or fail: the process ends and says what to do, nothing acknowledged is lost.

use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};
use pando_sim::{Exit, FaultyDisk};
use std::sync::Arc;

fn used(disk: &FaultyDisk) -> u64 {
    disk.paths().iter().map(|p| disk.file_len(p) as u64).sum()
}
fn bulk(from: i32, n: i32, concern: Document) -> Document {
    let many: Vec<Bson> = (from..from + n).map(|i| doc! { "_id": i, "s": "x".repeat(200) }.into()).collect();
    let mut bulk = doc! { "insert": "c" };
    bulk.push("documents", many);
    bulk.push("writeConcern", concern);
    bulk
}
fn is_good(reply: &Document) -> bool {
    let clean = !reply.contains("writeConcernError") && !reply.contains("writeErrors");
    clean && reply.get("ok").is_some_and(Bson::is_truthy)
}
fn count(rig: &Rig, i: usize) -> i64 {
    rig.ask(i, anywhere(doc! { "count": "c" })).get("n").and_then(Bson::as_i64).unwrap_or(-1)
}
/// Waits for the end of a process and returns why it ended.
fn end_of(rig: &Rig, i: usize) -> String {
    rig.until("the end of the process", |rig| rig.nodes[i].exit().is_some());
    match rig.nodes[i].exit() {
        Some(Exit::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}
fn says_that_the_disk_is_full(why: &str) -> bool {
    why.contains("full") && why.contains("room")
}
fn has_all(rig: &Rig, i: usize, n: i64) {
    rig.until("all documents", |rig| count(rig, i) == n);
    let checked = rig.ok(i, anywhere(doc! { "validate": "c", "full": true, "enforceFastCount": true }));
    assert!(checked.get("valid").is_some_and(Bson::is_truthy), "{checked:?}");
}

#[test]
fn a_primary_with_a_full_disk_ends_and_the_set_goes_on() {
    for room in [0, 1000, 20_000, 60_000] {
        let mut rig = Rig::of(room, 3);
        let p = rig.primary();
        rig.ok(p, bulk(0, 100, w(3)));
        let disk = rig.nodes[p].disk.clone();
        disk.set_capacity(Some(used(&disk) + room));
        let mut sent = 100;
        let mut acknowledged = 100;
        while rig.nodes[p].exit().is_none() && sent < 3000 {
            let reply = rig.ask(p, bulk(sent, 50, doc! { "w": "majority", "wtimeout": 3000 }));
            sent += 50;
            if is_good(&reply) && acknowledged == sent - 50 {
                acknowledged = sent;
            }
        }
        let why = end_of(&rig, p);
        assert!(says_that_the_disk_is_full(&why), "{why}");
        let next = rig.primary();
        assert!(count(&rig, next) >= i64::from(acknowledged), "room {room}");
        rig.ok(next, doc! { "insert": "c", "documents": [{ "_id": -1 }], "writeConcern": w(2) });
        disk.set_capacity(None);
        rig.nodes[p].boot();
        rig.until("it follows again", |rig| count(rig, p) >= 0 && count(rig, p) == count(rig, next));
        has_all(&rig, p, count(&rig, next));
    }
}

#[test]
fn a_checkpoint_on_a_full_disk_ends_the_process_and_loses_nothing() {
    let mut ended = 0;
    for room in [0, 100, 2_000, 8_000] {
        let mut rig = Rig::of(50 + room, 1);
        rig.ok(0, bulk(0, 120, doc! { "w": 1, "j": true }));
        let disk = rig.nodes[0].disk.clone();
        disk.set_capacity(Some(used(&disk) + room));
        rig.ask(0, doc! { "fsync": 1, "$db": "admin" });
        rig.wait_ms(200);
        if let Some(Exit::Failed(why)) = rig.nodes[0].exit() {
            assert!(says_that_the_disk_is_full(&why), "{why}");
            ended += 1;
        }
        disk.set_capacity(None);
        rig.nodes[0].lose_power();
        rig.nodes[0].boot();
        rig.until("it is back", |rig| rig.is_primary(0));
        has_all(&rig, 0, 120);
    }
    assert!(ended >= 2, "{ended}");
}

#[test]
fn a_first_copy_on_a_full_disk_ends_and_is_made_when_there_is_room() {
    for room in [500, 5_000, 20_000] {
        let mut rig = Rig::of(80 + room, 3);
        let p = rig.primary();
        let s = rig.others(p)[0];
        rig.ok(p, bulk(0, 200, w(3)));
        rig.nodes[s].lose_power();
        let disk = Arc::new(FaultyDisk::new(room));
        disk.set_capacity(Some(room));
        rig.nodes[s].disk = disk.clone();
        rig.nodes[s].boot();
        let why = end_of(&rig, s);
        assert!(says_that_the_disk_is_full(&why), "{why}");
        disk.set_capacity(None);
        rig.nodes[s].boot();
        has_all(&rig, s, 200);
    }
}

#[test]
fn a_rollback_on_a_full_disk_ends_the_process_and_is_done_when_there_is_room() {
    for room in [0, 60, 400, 2_000, 5_000] {
        let mut rig = Rig::of(120 + room, 3);
        let old = rig.primary();
        rig.ok(old, bulk(0, 20, w(3)));
        rig.isolate(old);
        rig.ok(old, bulk(1000, 30, w(1)));
        rig.until("another primary", |rig| rig.others(old).into_iter().any(|i| rig.is_primary(i)));
        let new = rig.others(old).into_iter().find(|i| rig.is_primary(*i)).unwrap();
        rig.ok(new, bulk(2000, 5, majority()));
        rig.wait_ms(1000);
        let disk = rig.nodes[old].disk.clone();
        disk.set_capacity(Some(used(&disk) + room));
        rig.heal();
        rig.wait_ms(15_000);
        disk.set_capacity(None);
        rig.nodes[old].lose_power();
        rig.nodes[old].boot();
        has_all(&rig, old, 25);
    }
}

/// After a failed sync nothing is known of what the disk holds: no retry, no further acknowledgement.
#[test]
fn a_failed_sync_ends_the_process_and_what_was_acknowledged_is_there() {
    for n in 0..6 {
        let mut rig = Rig::of(200 + n, 3);
        let p = rig.primary();
        rig.ok(p, bulk(0, 10, doc! { "w": 3, "j": true }));
        let disk = rig.nodes[p].disk.clone();
        disk.lose_sync_in(n);
        let mut acknowledged = 10;
        while rig.nodes[p].exit().is_none() && acknowledged < 500 {
            let reply = rig.ask(p, bulk(acknowledged, 1, doc! { "w": 1, "j": true }));
            if !is_good(&reply) {
                break;
            }
            acknowledged += 1;
        }
        let why = end_of(&rig, p);
        assert!(!why.is_empty());
        // The machine lives on, and with it what was written and never synced.
        rig.isolate(p);
        rig.nodes[p].lose_power();
        rig.nodes[p].boot();
        rig.until("what it has", |rig| count(rig, p) >= i64::from(acknowledged));
        rig.heal();
        rig.until("one history", |rig| count(rig, p) == count(rig, rig.primary()));
    }
}

/// A supervisor starts the process again on a machine that lives on: its memory shows what the failed sync has dropped, and
/// a sync of that says Ok. What is told of it to others, and written after it, must outlast the next loss of power.
#[test]
fn what_a_failed_sync_left_in_memory_alone_is_on_the_disk_once_a_start_has_found_it() {
    for n in 0..8 {
        let mut rig = Rig::of(300 + n, 3);
        let p = rig.primary();
        rig.ok(p, bulk(0, 10, doc! { "w": 3, "j": true }));
        rig.nodes[p].disk.lose_sync_in(n);
        let mut sent = 10;
        while rig.nodes[p].exit().is_none() && sent < 500 {
            rig.ask(p, bulk(sent, 1, doc! { "w": 1, "j": true }));
            sent += 1;
        }
        end_of(&rig, p);
        rig.isolate(p);
        rig.nodes[p].boot();
        rig.until("what it has", |rig| count(rig, p) >= 10);
        let found = count(&rig, p);
        rig.nodes[p].lose_power();
        rig.nodes[p].boot();
        rig.until("what it has again", |rig| count(rig, p) >= 0);
        assert_eq!(count(&rig, p), found, "sync {n}");
        rig.heal();
        rig.ok(rig.primary(), bulk(1000, 10, doc! { "w": 3, "j": true }));
        rig.nodes[p].lose_power();
        rig.nodes[p].boot();
        rig.until("one history", |rig| count(rig, p) == count(rig, rig.primary()));
    }
}
