//! Write concerns with members that can be reached or not.

use crate::rows::initial_sync::hang;
use pando_bson::{Bson, doc};
use pando_sim::rig::{Rig, words::*};

#[test]
fn a_number_of_members_is_waited_for_and_a_timeout_keeps_the_data() {
    let rig = Rig::of(11, 3);
    let p = rig.primary();
    rig.ok(p, insert(1, w(3)));
    rig.isolate(p);
    let late = rig.ask(p, insert(2, doc! { "w": 2, "wtimeout": 500 }));
    assert_eq!((concern_code(&late), number(&late, "n")), (Some(64), 1), "{late:?}");
    assert!(at(&late, "writeConcernError.errInfo.wtimeout").is_some_and(Bson::is_truthy), "{late:?}");
    assert_eq!(ids(&rig.ok(p, find("local"))), [1, 2]);
    // Somebody comes back in time.
    let waiting = rig.start(p, insert(3, doc! { "w": 2, "wtimeout": 20_000 }));
    rig.wait_ms(1000);
    assert!(waiting.answer().is_none());
    rig.heal();
    rig.until("two members to have it", |_| waiting.answer().is_some());
    let done = waiting.answer().unwrap();
    assert_eq!(concern_code(&done), None, "{done:?}");
}

#[test]
fn what_a_majority_has_is_read_at_once_with_majority() {
    let rig = Rig::of(12, 3);
    let p = rig.primary();
    for i in 0..20 {
        rig.ok(p, insert(i, majority()));
        let seen = ids(&rig.ok(p, find("majority")));
        assert_eq!(seen.last(), Some(&i64::from(i)), "{seen:?}");
    }
}

#[test]
fn a_custom_mode_counts_distinct_tag_values() {
    let tags = |dc: &str| doc! { "tags": { "dc": dc } };
    let settings = doc! { "getLastErrorModes": { "twoSites": { "dc": 2 } } };
    let rig = Rig::with(13, &[tags("a"), tags("a"), tags("b")], settings);
    let p = rig.primary();
    let two = |id, ms: i32| insert(id, doc! { "w": "twoSites", "wtimeout": ms });
    rig.ok(p, two(1, 10_000));
    let dc = |i: usize| if i == 2 { "b" } else { "a" };
    let other_site: Vec<usize> = rig.others(p).into_iter().filter(|i| dc(*i) != dc(p)).collect();
    for i in &other_site {
        rig.isolate(*i);
    }
    // A member of the same site, if there is one, makes no difference; without the other site there is no end.
    let late = rig.ask(p, two(2, 1000));
    assert_eq!(concern_code(&late), Some(64), "{late:?}");
    rig.heal();
    rig.until("both sites to have the next", |rig| {
        concern_code(&rig.ask(rig.primary(), two(3, 5000))).is_none()
    });
    let unknown = rig.ask(rig.primary(), insert(4, doc! { "w": "noSuchMode" }));
    assert_eq!(concern_code(&unknown), Some(79), "{unknown:?}");
    let many = rig.ask(rig.primary(), insert(5, doc! { "w": 4 }));
    assert_eq!(concern_code(&many), Some(100), "{many:?}");
}

#[test]
fn bare_writes_take_the_default_of_the_set() {
    let rig = Rig::of(14, 3);
    let p = rig.primary();
    let bare = |id: i32| doc! { "insert": "c", "documents": [{ "_id": id }] };
    rig.ok(p, bare(1));
    rig.isolate(p);
    // Implicitly a majority: three members, no arbiter.
    let waiting = rig.start(p, bare(2));
    rig.wait_ms(3000);
    assert!(waiting.answer().is_none());
    rig.heal();
    rig.until("an answer", |_| waiting.answer().is_some());
    let p = rig.primary();
    let set = doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": 1 },
    "writeConcern": { "w": "majority" }, "$db": "admin" };
    rig.ok(p, set);
    rig.isolate(p);
    let at_once = rig.start(p, bare(3));
    rig.wait_ms(1000);
    let done = at_once.answer().expect("w: 1 needs nobody");
    assert_eq!(number(&done, "n"), 1);
    rig.heal();
    let p = rig.primary();
    let unset = doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": {}, "$db": "admin" };
    assert_eq!(code(&rig.ask(p, unset)), 20);
    rig.until("the default on a secondary", |rig| {
        let got =
            rig.ask(rig.others(p)[0], doc! { "getDefaultRWConcern": 1, "inMemory": true, "$db": "admin" });
        at(&got, "defaultWriteConcern.w").and_then(Bson::as_i64) == Some(1)
    });
}

#[test]
fn a_commit_quorum_is_checked_against_the_members_that_hold_data() {
    let rig =
        Rig::with(160, &[doc! {}, doc! { "votes": 0, "priority": 0 }, doc! { "arbiterOnly": true }], doc! {});
    let p = rig.primary();
    rig.ok(p, insert(1, w(2)));
    let create = |quorum: Bson| {
        let mut c = doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] };
        c.push("commitQuorum", quorum);
        rig.ask(p, c)
    };
    assert_eq!(code(&create(3.into())), 278, "the arbiter holds nothing");
    assert_eq!(code(&create("a mode".into())), 79);
    assert_eq!(code(&create((-1).into())), 9);
    assert_eq!(code(&create(51.into())), 9);
    assert_eq!(code(&create(true.into())), 14);
    let done = create(2.5.into());
    assert_eq!(done.get("commitQuorum"), Some(&Bson::Int32(2)), "{done:?}");
    let there = create("majority".into());
    assert_eq!(number(&there, "numIndexesAfter"), 2, "{there:?}");
}

/// A majority whose disks stand still holds a majority write back, unless being written is enough for the set.
#[test]
fn a_majority_of_stalled_journals_stalls_majority_writes_if_the_set_says_so() {
    for journaled in [true, false] {
        let rig = Rig::of(15, 3);
        let p = rig.primary();
        let mut config = rig.next_config(p);
        config.push("writeConcernMajorityJournalDefault", journaled);
        rig.admin(p, doc! { "replSetReconfig": config });
        rig.ok(p, insert(1, w(3)));
        for s in rig.others(p) {
            hang(&rig, s, "pauseJournalFlusherThread", true);
        }
        let answer = rig.ask(p, insert(2, doc! { "w": "majority", "wtimeout": 3_000 }));
        assert_eq!(concern_code(&answer), journaled.then_some(64), "{answer:?}");
        let synced = rig.ask(p, insert(3, doc! { "w": "majority", "j": true, "wtimeout": 3_000 }));
        assert_eq!(concern_code(&synced), Some(64), "{synced:?}");
        for s in rig.others(p) {
            hang(&rig, s, "pauseJournalFlusherThread", false);
        }
        rig.ok(p, insert(4, doc! { "w": "majority", "wtimeout": 10_000 }));
    }
}
