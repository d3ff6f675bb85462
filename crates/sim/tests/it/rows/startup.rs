//! What a process finds when it starts, and what it may lose.

use super::parted::{bulk, hash};
use pando_bson::{Bson, Document, doc};
use pando_sim::FaultyDisk;
use pando_sim::rig::{Rig, words::*};
use std::collections::BTreeSet;
use std::sync::Arc;

fn same(rig: &Rig, a: usize, b: usize) -> bool {
    let hello = rig.hello(a);
    let serves = ["secondary", "isWritablePrimary"].iter().any(|f| hello.get(f).is_some_and(Bson::is_truthy));
    serves && hash(rig, a).is_some() && hash(rig, a) == hash(rig, b)
}
fn unsynced() -> Document {
    doc! { "w": 1, "j": false }
}
fn log_of(rig: &Rig, i: usize) -> Vec<(pando_base::Timestamp, Vec<u8>)> {
    let server = rig.nodes[i].server().expect("it runs");
    let mut cursor = server.storage.log().read(std::ops::Bound::Unbounded, false);
    let mut all = Vec::new();
    while let Some((ts, entry)) = cursor.next().unwrap() {
        all.push((ts, entry.to_vec()));
    }
    all
}

/// There are no checkpoints without a timestamp here: the end of a first copy is one checkpoint, under a marker.
#[test]
fn a_member_that_dies_at_any_sync_of_its_first_copy_ends_with_a_whole_one() {
    let mut ended = 0;
    for n in 0..24 {
        let mut rig = Rig::of(n, 3);
        let p = rig.primary();
        let s = rig.others(p)[0];
        rig.ok(p, bulk(0, 300, w(3)));
        rig.ok(p, doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }], "writeConcern": w(3) });
        rig.nodes[s].lose_power();
        rig.nodes[s].disk = Arc::new(FaultyDisk::new(500 + n));
        rig.nodes[s].disk.fail_sync_in(n);
        rig.nodes[s].boot();
        rig.until("an end", |rig| rig.nodes[s].exit().is_some() || same(rig, s, p));
        ended += u32::from(rig.nodes[s].exit().is_some());
        rig.ok(p, bulk(1000, 10, w(2)));
        rig.nodes[s].lose_power();
        rig.nodes[s].boot();
        rig.until("the whole copy", |rig| same(rig, s, p));
        let checked = rig.ok(s, anywhere(doc! { "validate": "c", "full": true, "enforceFastCount": true }));
        assert!(checked.get("valid").is_some_and(Bson::is_truthy), "sync {n}: {checked:?}");
    }
    assert!(ended >= 12, "{ended}");
}

#[test]
fn a_primary_that_loses_power_keeps_a_log_without_gaps_beside_its_peers() {
    let mut lost = 0;
    for seed in 0..12u64 {
        let mut rig = Rig::of(seed, 3);
        let p = rig.primary();
        rig.ok(p, insert(-1, w(3)));
        let mut writers = Vec::new();
        for i in 0..60 {
            writers.push(rig.start(p, bulk(i * 100, 1 + i % 30, unsynced())));
            if i % 7 == seed as i32 % 7 {
                rig.wait_ms(1 + seed % 5);
            }
        }
        rig.wait_ms(seed * 3);
        rig.isolate(p);
        rig.nodes[p].lose_power();
        rig.nodes[p].boot();
        rig.until("it has started", |rig| rig.nodes[p].server().is_some());
        let mine = log_of(&rig, p);
        for peer in rig.others(p) {
            let theirs = log_of(&rig, peer);
            let (from, to) =
                (theirs[0].0.max(mine[0].0), mine.last().unwrap().0.min(theirs.last().unwrap().0));
            let part = |log: &[(pando_base::Timestamp, Vec<u8>)]| -> Vec<_> {
                log.iter().filter(|(ts, _)| (from..=to).contains(ts)).cloned().collect()
            };
            assert!(part(&mine) == part(&theirs), "seed {seed}: entries are missing in the middle");
            lost += usize::from(theirs.last() > mine.last());
        }
        rig.heal();
        rig.until("one history", |rig| rig.others(p).into_iter().all(|i| same(rig, p, i)));
    }
    assert!(lost > 0, "nothing was lost: the test shows nothing");
}

/// Whatever the interval, who asks for `j: true` does not wait for it, and nobody loses more than it.
#[test]
fn the_journal_interval_bounds_what_is_lost_and_nobody_waits_for_it() {
    const INTERVAL: u64 = 400;
    let mut lost = 0;
    for seed in 0..6 {
        let mut rig = Rig::of(seed, 1);
        rig.admin(0, doc! { "setParameter": 1, "journalCommitInterval": INTERVAL as i64 });
        rig.ok(0, insert(-1, doc! { "w": 1, "j": true }));
        rig.wait_ms(500);
        let begun = rig.world.sim.now();
        rig.ok(0, insert(-2, doc! { "w": 1, "j": true }));
        let took = (rig.world.sim.now() - begun).as_millis() as u64;
        assert!(took < INTERVAL / 4, "{took} ms");
        let mut acknowledged = Vec::new();
        for id in 0..(60 + 7 * seed as i32) {
            rig.ok(0, insert(id, unsynced()));
            acknowledged.push((rig.world.sim.now(), id));
            rig.wait_ms(20);
        }
        let cut = rig.world.sim.now();
        rig.nodes[0].lose_power();
        rig.nodes[0].boot();
        rig.until("it is back", |rig| rig.is_primary(0));
        let found = rig.ok(0, doc! { "find": "c", "batchSize": 1000 });
        let found: BTreeSet<i64> = ids(&found).into_iter().collect();
        assert!(found.contains(&-2));
        for (at, id) in acknowledged {
            let old = (cut - at).as_millis() as u64 > INTERVAL + 50;
            let there = found.contains(&i64::from(id));
            assert!(there || !old, "seed {seed}: {id} was acknowledged {:?} before", cut - at);
            lost += u32::from(!there);
        }
    }
    assert!(lost > 0, "nothing was lost: the test shows nothing");
}
