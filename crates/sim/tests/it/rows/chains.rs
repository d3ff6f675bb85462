//! Transactions that several entries tell, of which a new primary has the first ones only.

use super::parted::*;
use super::rollback::{retryable, within};
use pando_base::Timestamp;
use pando_bson::{Document, doc};
use pando_sim::rig::{Rig, words::*};
use std::ops::Bound;

fn commit(number: i64, concern: Document) -> Document {
    let mut commit = doc! { "commitTransaction": 1, "$db": "admin" };
    commit.push("writeConcern", concern);
    within(commit, number, false)
}
fn end_of_log(rig: &Rig, i: usize) -> Timestamp {
    rig.nodes[i].server().expect("a running member").storage.log().last()
}
fn count_big(rig: &Rig, i: usize) -> i64 {
    number(&rig.ok(i, anywhere(doc! { "count": "big" })), "n")
}
/// The one of them that becomes primary.
fn elected(rig: &Rig, among: &[usize]) -> usize {
    let primary = |rig: &Rig| among.iter().copied().find(|i| rig.is_primary(*i));
    rig.until("another primary", |rig| primary(rig).is_some());
    primary(rig).unwrap_or_default()
}

/// A primary, cut off after another member got the first entry of a transaction of two, and the next primary.
fn without_the_end(seed: u64) -> (Rig, usize, usize) {
    let rig = Rig::of(seed, 3);
    let old = rig.primary();
    let (heir, third) = (rig.others(old)[0], rig.others(old)[1]);
    rig.ok(old, insert(0, w(3)));
    rig.ok(old, doc! { "create": "big", "writeConcern": w(3) });
    switch(&rig, third, "stopReplProducer", true);
    let before = end_of_log(&rig, heir);
    for id in 0..3 {
        let big = doc! { "insert": "big", "documents": [{ "_id": id, "pad": "x".repeat(6 << 20) }] };
        rig.ok(old, within(big, 1, id == 0));
    }
    let asked = rig.start(old, commit(1, w(1)));
    while end_of_log(&rig, heir) == before {
        assert!(rig.world.sim.step(), "it never got the first entry");
    }
    rig.isolate(old);
    rig.until("the commit", |_| asked.answer().is_some());
    assert!(end_of_log(&rig, heir) < end_of_log(&rig, old), "the end is missing");
    switch(&rig, third, "stopReplProducer", false);
    let (begun, new) = (end_of_log(&rig, heir), elected(&rig, &[heir, third]));
    let parts = rig.nodes[new]
        .server()
        .expect("a running member")
        .storage
        .log()
        .read(Bound::Included(begun), false)
        .next();
    assert!(parts.unwrap().is_some_and(|(at, _)| at == begun), "it has the beginning");
    (rig, old, new)
}

#[test]
fn a_new_primary_never_applies_a_chain_whose_end_it_lacks_and_its_session_goes_on() {
    let (rig, old, heir) = without_the_end(190);
    assert_eq!(count_big(&rig, heir), 0);
    assert_eq!(count_big(&rig, old), 3, "where it was committed, for nobody");
    let unknown = rig.ask(heir, commit(1, majority()));
    assert_eq!(code(&unknown), 251, "{unknown:?}");
    let small = |id: i32| doc! { "insert": "big", "documents": [{ "_id": id }] };
    rig.ok(heir, within(small(10), 2, true));
    rig.ok(heir, commit(2, majority()));
    rig.ok(heir, retryable(small(11), 9, 3));
    assert_eq!(count_big(&rig, heir), 2);
    rig.heal();
    rig.until("one history", |rig| {
        same(rig, old, heir) && rig.others(heir).iter().all(|i| same(rig, *i, heir))
    });
    for i in 0..3 {
        assert_eq!(count_big(&rig, i), 2, "member {i}");
    }
}

#[test]
fn a_restart_of_the_new_primary_finds_no_more_of_a_chain_without_its_end() {
    let (mut rig, old, heir) = without_the_end(191);
    rig.ok(heir, insert(1, majority()));
    for i in rig.others(old) {
        rig.nodes[i].lose_power();
        rig.nodes[i].boot();
    }
    let p = elected(&rig, &rig.others(old));
    assert_eq!(count_big(&rig, p), 0);
    rig.ok(p, within(doc! { "insert": "big", "documents": [{ "_id": 10 }] }, 2, true));
    rig.ok(p, commit(2, majority()));
    rig.heal();
    rig.until("one history", |rig| rig.others(p).iter().all(|i| same(rig, *i, p)));
    assert!((0..3).all(|i| count_big(&rig, i) == 1));
}
