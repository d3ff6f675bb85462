//! Members whose logs have parted where the source's log begins too late to show it: another is asked, and when none can
//! tell, the set's data is copied again.

use super::initial_sync::is_secondary;
use super::parted::{documents, hash, log_of, make_primary, same, switch};
use pando_base::Timestamp;
use pando_bson::{Bson, Document, doc};
use pando_sim::FaultyDisk;
use pando_sim::rig::{Rig, words::*};
use std::sync::Arc;

/// The timestamps that come lie far ahead: copies that begin their log meanwhile begin it before that.
fn go_ahead(rig: &Rig, i: usize, secs: u32) {
    let log = rig.nodes[i].server().expect("it runs").storage.log().clone();
    log.advance_clock(Timestamp::new(log.clock().secs() + secs, 1));
}
fn copy_anew(rig: &Rig, i: usize) {
    rig.admin(i, doc! { "resync": 1 });
    rig.until("its state", |rig| !is_secondary(rig, i));
    rig.until("a secondary again", |rig| is_secondary(rig, i));
}
fn rollback_metrics(rig: &Rig, i: usize) -> Document {
    let status = rig.admin(i, doc! { "serverStatus": 1 });
    at(&status, "metrics.repl.rollback").and_then(Bson::as_doc).expect("metrics").clone()
}
/// The `_id`s of users' documents in a member's rollback files: the feature version may be among what is not sure.
fn kept(rig: &Rig, i: usize) -> Vec<i64> {
    let disk = &rig.nodes[i].disk;
    let files = disk.paths().into_iter().filter(|p| p.starts_with("rollback/"));
    files.flat_map(|p| documents(&disk.bytes(&p))).filter_map(|d| d.get("_id")?.as_i64()).collect()
}

/// Document 1 everywhere, 2 at the old primary alone, 3 at the others; of these, one's log begins after 1.
fn with_a_short_log(seed: u64) -> (Rig, [usize; 3]) {
    let rig = Rig::of(seed, 3);
    let old = rig.primary();
    rig.ok(old, insert(1, w(3)));
    rig.isolate(old);
    go_ahead(&rig, old, 1_000);
    rig.ok(old, insert(2, w(1)));
    let elected = |rig: &Rig| rig.others(old).into_iter().find(|i| rig.is_primary(*i));
    rig.until("another primary", |rig| elected(rig).is_some());
    let new = elected(&rig).unwrap();
    let short = rig.others(old).into_iter().find(|i| *i != new).unwrap();
    rig.ok(new, insert(3, majority()));
    rig.wait_ms(3_000);
    copy_anew(&rig, short);
    let shared = log_of(&rig, old);
    assert!(log_of(&rig, short).iter().all(|e| !shared.contains(e)), "its log begins later");
    assert!(log_of(&rig, new).iter().any(|e| shared.contains(e)));
    (rig, [old, new, short])
}

#[test]
fn another_member_is_asked_where_the_logs_parted() {
    let (rig, [old, new, short]) = with_a_short_log(130);
    rig.world.watch_lines(&[9100026, 9100024]);
    let source = rig.nodes[short].addr();
    make_primary(&rig, short);
    rig.heal();
    // The far one tells nothing.
    rig.part(old, new);
    rig.until("an answer", |rig| number(&rollback_metrics(rig, old), "sourcesWithoutCommonPoint") == 1);
    let status = rig.status(old);
    let members = at(&status, "members").and_then(Bson::as_array).unwrap();
    let me = members.iter().filter_map(Bson::as_doc).find(|m| m.contains("self")).unwrap();
    let info = me.get("infoMessage").and_then(Bson::as_str).unwrap();
    assert!(info.contains(&source), "{info}");
    rig.heal();
    rig.until("one history", |rig| same(rig, old, short) && same(rig, new, short));
    assert_eq!(ids(&rig.ok(old, find("local"))), [1, 3]);
    assert_eq!(kept(&rig, old), [2]);
    let metrics = rollback_metrics(&rig, old);
    assert_eq!((number(&metrics, "count"), number(&metrics, "copiedAgain")), (1, 0), "{metrics:?}");
    assert_eq!(rig.world.take_lines().len(), 1);
    assert_eq!(rig.nodes[old].boots(), 1);
}

/// Nobody's log reaches back.
fn with_short_logs_only(seed: u64) -> (Rig, [usize; 3]) {
    let (rig, [old, new, short]) = with_a_short_log(seed);
    make_primary(&rig, short);
    rig.ok(short, insert(4, majority()));
    copy_anew(&rig, new);
    (rig, [old, new, short])
}

#[test]
fn when_nobody_can_tell_the_set_is_copied_again_and_nothing_is_lost_silently() {
    let (rig, [old, new, short]) = with_short_logs_only(131);
    let boots = rig.nodes[old].boots();
    rig.heal();
    rig.until("one history", |rig| same(rig, old, short) && same(rig, new, short));
    assert_eq!(ids(&rig.ok(old, find("local"))), [1, 3, 4]);
    assert!(kept(&rig, old).contains(&2), "what nobody else has");
    let metrics = rollback_metrics(&rig, old);
    assert_eq!(number(&metrics, "sourcesWithoutCommonPoint"), 2, "{metrics:?}");
    assert_eq!(number(&metrics, "copiedAgain"), 1, "{metrics:?}");
    assert_eq!(rig.nodes[old].boots(), boots, "no operator was needed");
    // What it promised binds it to nothing that the set does not have.
    rig.nodes[short].lose_power();
    rig.until("a primary", |rig| rig.is_primary(old) || rig.is_primary(new));
    let p = rig.primary_now().expect("a primary");
    rig.ok(p, insert(5, majority()));
}

/// One log begins between the parting and the end of ours, the other one after that: neither tells.
#[test]
fn a_log_that_begins_after_ours_ends_cannot_tell_either() {
    let (rig, [old, new, short]) = with_a_short_log(132);
    make_primary(&rig, short);
    go_ahead(&rig, short, 2_000);
    rig.ok(short, insert(4, majority()));
    rig.wait_ms(3_000);
    copy_anew(&rig, new);
    assert!(log_of(&rig, new)[0].0 > log_of(&rig, old).last().unwrap().0);
    rig.heal();
    rig.until("one history", |rig| same(rig, old, short) && same(rig, new, short));
    assert_eq!(ids(&rig.ok(old, find("local"))), [1, 3, 4]);
    assert!(kept(&rig, old).contains(&2));
    assert_eq!(number(&rollback_metrics(&rig, old), "copiedAgain"), 1);
}

#[test]
fn a_crash_on_the_way_to_copying_again_ends_in_a_whole_copy() {
    for n in 0..8 {
        let (mut rig, [old, new, short]) = with_short_logs_only(140 + n);
        rig.world.watch_lines(&[9100027]);
        rig.heal();
        let mut waited = 0;
        while rig.world.take_lines().is_empty() {
            assert!(waited < 120_000, "it does not come");
            rig.wait_ms(1);
            waited += 1;
        }
        rig.nodes[old].disk.fail_sync_in(n);
        rig.until("an end", |rig| rig.nodes[old].exit().is_some() || same(rig, old, short));
        rig.nodes[old].lose_power();
        rig.nodes[old].boot();
        rig.until("one history", |rig| same(rig, old, short) && same(rig, new, short));
        assert_eq!(ids(&rig.ok(old, find("local"))), [1, 3, 4], "sync {n}");
        assert!(kept(&rig, old).contains(&2), "sync {n}");
    }
}

/// It holds what is committed and gives it up; the member that it copies from then has less. Neither may lead.
#[test]
fn a_member_that_copied_from_somebody_with_less_does_not_stand_for_election() {
    let mut rig = Rig::of(150, 3);
    let p = rig.primary();
    let [a, b] = rig.others(p)[..] else { unreachable!() };
    rig.ok(p, insert(1, w(3)));
    // b has not the next one.
    rig.isolate(b);
    rig.ok(p, insert(2, majority()));
    rig.nodes[p].lose_power();
    switch(&rig, a, "initialSyncHangBeforeCopyingDatabases", true);
    rig.admin(a, doc! { "resync": 1 });
    rig.heal();
    rig.wait_ms(1_000);
    switch(&rig, a, "initialSyncHangBeforeCopyingDatabases", false);
    rig.until("a copy", |rig| is_secondary(rig, a));
    assert_eq!(ids(&rig.ok(a, find("local"))), [0, 1][1..], "of the one with less");
    rig.wait_ms(60_000);
    assert_eq!(rig.primary_now(), None, "an acknowledged write would be lost");
    rig.nodes[p].boot();
    let whole = hash(&rig, p);
    assert!(whole.is_some());
    rig.until("one history", |rig| [a, b].into_iter().all(|i| hash(rig, i) == whole));
    assert_eq!(ids(&rig.ok(a, find("local"))), [1, 2]);
}

/// The host that it follows is another machine by now, with a log that begins later: nothing has parted.
#[test]
fn a_source_that_was_replaced_is_no_reason_to_roll_back() {
    let mut rig = Rig::of(151, 3);
    let [p, middle, last] = rig.chain();
    rig.world.watch_lines(&[21657, 21611]);
    rig.ok(p, insert(1, w(3)));
    rig.part(last, middle);
    rig.ok(p, insert(2, w(2)));
    rig.nodes[middle].lose_power();
    rig.nodes[middle].disk = Arc::new(FaultyDisk::new(990));
    rig.nodes[middle].boot();
    rig.until("a copy", |rig| is_secondary(rig, middle));
    rig.heal();
    rig.until("one history", |rig| hash(rig, last).is_some() && hash(rig, last) == hash(rig, p));
    rig.ok(p, insert(3, w(3)));
    let told = rig.world.take_lines();
    assert!(told.is_empty(), "{told:?}");
}
