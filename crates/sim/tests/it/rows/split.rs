//! Transactions that several workers of a secondary apply: the same data as their primary has, decided as one, and whole or
//! not at all after a crash at any moment.

use super::initial_sync::is_secondary;
use super::parted::*;
use super::rollback::within;
use pando_base::Timestamp;
use pando_bson::{Bson, Document, doc};
use pando_sim::rig::{Rig, words::*};

const DOCS: i32 = 40;

fn ends(name: &str, number: i64, fields: Document) -> Document {
    let mut command = Document::new();
    command.push(name, 1);
    fields.iter().for_each(|(name, v)| command.push(name, v.clone()));
    command.push("$db", "admin");
    within(command, number, false)
}
fn documents_of(range: std::ops::Range<i32>) -> Vec<Bson> {
    range.map(|i| doc! { "_id": i, "n": 0, "words": ["a", format!("w{i}")] }.into()).collect()
}
fn insert_many(coll: &str, docs: Vec<Bson>) -> Document {
    let mut insert = doc! { "insert": coll };
    insert.push("documents", docs);
    insert
}
/// Collections with indexes of every way to be spread, with documents in them.
fn prepare_ground(rig: &Rig, p: usize) {
    for coll in ["plain", "unique", "counted"] {
        rig.ok(p, insert_many(coll, documents_of(0..DOCS)));
    }
    let index = |name: &str, unique: bool| {
        let mut key = doc! {};
        key.push(name, 1);
        let mut spec = doc! { "name": name, "unique": unique };
        spec.push("key", key);
        Bson::from(spec)
    };
    for (coll, specs) in
        [("plain", vec![index("n", false), index("words", false)]), ("unique", vec![index("place", true)])]
    {
        let mut create = doc! { "createIndexes": coll, "writeConcern": w(3) };
        if coll == "unique" {
            rig.ok(p, doc! { "delete": "unique", "deletes": [{ "q": {}, "limit": 0 }] });
            let docs = (0..DOCS).map(|i| doc! { "_id": i, "place": i }.into()).collect();
            rig.ok(p, insert_many("unique", docs));
        }
        create.push("indexes", specs);
        rig.ok(p, create);
    }
}
/// Writes documents several times over, takes some away and back, and hands unique keys from one to the next.
fn write_within(rig: &Rig, p: usize, number: i64) {
    let new = 1000 * number as i32;
    let inc =
        doc! { "update": "plain", "updates": [{ "q": {}, "u": { "$inc": { "n": 1 } }, "multi": true }] };
    rig.ok(p, within(inc.clone(), number, true));
    rig.ok(p, within(inc, number, false));
    let some = doc! { "delete": "plain", "deletes": [{ "q": { "_id": { "$lt": 10 } }, "limit": 0 }] };
    rig.ok(p, within(some, number, false));
    rig.ok(p, within(insert_many("plain", documents_of(5..10)), number, false));
    rig.ok(p, within(insert_many("plain", documents_of(new..new + 20)), number, false));
    for i in 0..5 {
        let away = new + i;
        let free = doc! { "update": "unique", "updates": [{ "q": { "_id": i }, "u": { "$set": { "place": away } } }] };
        rig.ok(p, within(free, number, false));
        let take = doc! { "update": "unique", "updates": [{ "q": { "_id": i + 10 }, "u": { "$set": { "place": i } } }] };
        rig.ok(p, within(take, number, false));
    }
    let other = doc! { "update": "counted", "updates": [{ "q": {}, "u": { "$set": { "by": number } }, "multi": true }] };
    rig.ok(p, within(other, number, false));
}
fn prepare(rig: &Rig, p: usize, number: i64, concern: Document) -> Timestamp {
    let mut fields = doc! {};
    fields.push("writeConcern", concern);
    match rig.ok(p, ends("prepareTransaction", number, fields)).get("prepareTimestamp") {
        Some(Bson::Timestamp(at)) => *at,
        other => panic!("not prepared: {other:?}"),
    }
}
fn commit(number: i64, at: Option<Timestamp>, concern: Document) -> Document {
    let mut fields = doc! {};
    if let Some(at) = at {
        fields.push("commitTimestamp", at);
    }
    fields.push("writeConcern", concern);
    ends("commitTransaction", number, fields)
}
fn shares(rig: &Rig, i: usize) -> Vec<usize> {
    let server = rig.nodes[i].server().expect("a running member");
    server.access.maintenance().prepared().iter().map(|p| p.shares).collect()
}
/// Every member has the same documents, counts and valid indexes.
fn agree(rig: &Rig, n: usize) {
    rig.until("one content", |rig| (1..n).all(|i| hash(rig, i).is_some() && hash(rig, i) == hash(rig, 0)));
    for coll in ["plain", "unique", "counted"] {
        let count = |i: usize| number(&rig.ok(i, anywhere(doc! { "count": coll })), "n");
        for i in 0..n {
            let valid =
                rig.ok(i, anywhere(doc! { "validate": coll, "full": true, "enforceFastCount": true }));
            assert!(valid.get("valid").is_some_and(Bson::is_truthy), "{coll} of member {i}: {valid:?}");
            assert_eq!(count(i), count(0), "{coll} of member {i}");
        }
    }
}

#[test]
fn a_transaction_that_is_spread_over_workers_gives_what_one_unit_gives() {
    let rig = Rig::of(150, 3);
    let p = rig.primary();
    prepare_ground(&rig, p);
    write_within(&rig, p, 1);
    rig.ok(p, commit(1, None, w(3)));
    agree(&rig, 3);
    write_within(&rig, p, 2);
    let at = prepare(&rig, p, 2, on_disk(3));
    for s in rig.others(p) {
        let of = shares(&rig, s);
        assert!(of.len() == 1 && of[0] > 1, "member {s} has split it: {of:?}");
    }
    assert_eq!(shares(&rig, p), [1]);
    rig.ok(p, commit(2, Some(at), w(3)));
    agree(&rig, 3);
    // What one member replays in one unit is what another one has applied in several.
    let mut rig = rig;
    let s = rig.others(p)[0];
    rig.nodes[s].lose_power();
    rig.nodes[s].boot();
    rig.until("a secondary", |rig| is_secondary(rig, s));
    agree(&rig, 3);
}

/// The member that has split it becomes primary and decides.
fn decided_by_the_next_primary(seed: u64, commits: bool) {
    let rig = Rig::of(seed, 3);
    let p = rig.primary();
    prepare_ground(&rig, p);
    rig.until("one content", |rig| (1..3).all(|i| hash(rig, i).is_some() && hash(rig, i) == hash(rig, 0)));
    let before = hash(&rig, p);
    write_within(&rig, p, 1);
    let at = prepare(&rig, p, 1, on_disk(3));
    let heir = rig.others(p)[0];
    rig.until("its office", |rig| {
        rig.ask(heir, doc! { "replSetStepUp": 1, "$db": "admin" });
        rig.wait_ms(2_000);
        rig.is_primary(heir)
    });
    assert!(shares(&rig, heir)[0] > 1, "it still has the shares that its workers made");
    let blocked = doc! { "update": "plain", "updates": [{ "q": { "_id": 20 }, "u": { "$inc": { "n": 1 } } }], "maxTimeMS": 200 };
    assert_eq!(code(&rig.ask(heir, blocked)), 50, "its documents are undecided");
    let free = doc! { "insert": "beside", "documents": [{ "_id": 1 }], "writeConcern": w(3) };
    rig.ok(heir, free);
    rig.ok(heir, doc! { "drop": "beside", "writeConcern": w(3) });
    if commits {
        rig.ok(heir, prepare_again());
        rig.ok(heir, commit(1, Some(at), w(3)));
        assert_ne!(hash(&rig, heir), before);
    } else {
        rig.ok(heir, ends("abortTransaction", 1, doc! { "writeConcern": w(3) }));
        assert_eq!(hash(&rig, heir), before);
    }
    assert!((0..3).all(|i| shares(&rig, i).is_empty()));
    agree(&rig, 3);
}
/// As a coordinator does: a new primary may not know yet that a majority has it.
fn prepare_again() -> Document {
    ends("prepareTransaction", 1, doc! { "writeConcern": majority() })
}

#[test]
fn a_member_that_has_split_a_transaction_commits_all_shares_once_it_is_primary() {
    decided_by_the_next_primary(151, true);
}
#[test]
fn a_member_that_has_split_a_transaction_gives_up_all_shares_once_it_is_primary() {
    decided_by_the_next_primary(152, false);
}

/// Whether a member shows the transaction's writes: all of them or none.
fn whole(rig: &Rig, i: usize) -> bool {
    let count = |filter: Document| {
        let mut c = anywhere(doc! { "count": "counted" });
        c.push("query", filter);
        number(&rig.ok(i, c), "n")
    };
    let new = count(doc! { "by": { "$exists": true } });
    assert!(new == 0 || new == i64::from(DOCS), "member {i} shows {new} of {DOCS} writes");
    new > 0
}

/// Both secondaries are killed when so many of their workers have done their share of what `what` makes them apply.
fn killed_in_between(seed: u64, done: usize, what: impl Fn(&Rig, usize)) -> bool {
    let mut rig = Rig::with(seed, &[doc! { "priority": 2 }, doc! {}, doc! {}], Document::new());
    rig.until("the first to be primary", |rig| rig.is_primary(0));
    prepare_ground(&rig, 0);
    rig.until("one content", |rig| (1..3).all(|i| hash(rig, i).is_some() && hash(rig, i) == hash(rig, 0)));
    write_within(&rig, 0, 1);
    what(&rig, 0);
    let working = |rig: &Rig| rig.world.sim.running().iter().filter(|name| **name == "offloaded").count();
    step_until(&rig, |rig| working(rig) > 0);
    for _ in 0..done {
        step_until(&rig, |rig| working(rig) > 0);
        let now = working(&rig);
        step_until(&rig, |rig| working(rig) < now);
    }
    for i in [1, 2] {
        rig.nodes[i].kill();
        rig.nodes[i].boot();
    }
    rig.until("both to follow again", |rig| [1, 2].iter().all(|i| is_secondary(rig, *i)));
    let shown = [whole(&rig, 1), whole(&rig, 2)];
    rig.until("a primary", |rig| rig.primary_now().is_some());
    let p = rig.primary();
    if let [one] = &rig.nodes[p].server().expect("it runs").access.maintenance().prepared()[..] {
        let at = one.at.ts;
        rig.ok(p, prepare_again());
        rig.ok(p, commit(1, Some(at), w(3)));
    }
    agree(&rig, 3);
    assert!((0..3).all(|i| whole(&rig, i)));
    shown != [false, false]
}
fn step_until(rig: &Rig, holds: impl Fn(&Rig) -> bool) {
    let found = (0..1_000_000).any(|_| holds(rig) || !rig.world.sim.step());
    assert!(found && holds(rig), "never happened");
}

#[test]
fn a_crash_between_the_shares_of_a_commit_leaves_all_or_nothing() {
    for k in 0..4 {
        killed_in_between(160 + k as u64, k, |rig, p| drop(rig.ok(p, commit(1, None, w(1)))));
    }
}

#[test]
fn a_crash_between_the_shares_of_a_prepared_transaction_leaves_it_undecided_as_a_whole() {
    for k in 0..4 {
        let shown = killed_in_between(170 + k as u64, k, |rig, p| _ = prepare(rig, p, 1, w(1)));
        assert!(!shown, "undecided, but there");
    }
}

#[test]
fn a_crash_while_the_shares_of_a_prepared_transaction_are_committed_leaves_all_or_nothing() {
    for k in 0..3 {
        killed_in_between(180 + k as u64, k, |rig, p| {
            let at = prepare(rig, p, 1, on_disk(3));
            rig.ok(p, commit(1, Some(at), w(1)));
        });
    }
}

#[test]
fn a_split_transaction_whose_commit_is_rolled_back_is_undecided_again() {
    let prepared = std::cell::Cell::new(Timestamp::ZERO);
    let p = Parted::after(
        153,
        |rig, p| {
            prepare_ground(rig, p);
            write_within(rig, p, 1);
            prepared.set(prepare(rig, p, 1, on_disk(3)));
        },
        |rig, old| drop(rig.ok(old, commit(1, Some(prepared.get()), w(1)))),
        |rig, new| {
            drop(rig.ok(
                new,
                doc! { "insert": "beside", "documents": [{ "_id": 3 }], "writeConcern": majority() },
            ))
        },
    );
    // By their logs: a digest of the data waits until the transaction is decided.
    p.rig.heal();
    p.rig.until("the old primary to follow", |rig| {
        is_secondary(rig, p.old) && log_of(rig, p.old).last() == log_of(rig, p.new).last()
    });
    assert!(!whole(&p.rig, p.old));
    let new = p.rig.primary();
    p.rig.ok(new, commit(1, Some(prepared.get()), w(3)));
    agree(&p.rig, 3);
    assert!((0..3).all(|i| whole(&p.rig, i)));
}
