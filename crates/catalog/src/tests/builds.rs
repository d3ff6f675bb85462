//! Index builds that a change of role or a rollback cuts off.

use crate::testing::{World, ns};
use crate::{Applying, Uninterrupted, WriteOp};
use pando_base::Timestamp;
use pando_bson::{RawDoc, doc};
use pando_oplog::EntryView;
use pando_storage::ReadAt;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

/// A build in its course: registered, its task not at its end.
fn begun(w: &World) -> impl Future<Output = pando_base::Result<crate::IndexesCreated>> + '_ {
    let target = ns("db.c");
    async move {
        let spec = doc! { "key": { "a": 1 }, "name": "a_1" }.to_raw();
        let specs: [&RawDoc; 1] = [&spec];
        w.catalog.create_indexes(&target, &specs, &Uninterrupted).await
    }
}

/// No longer primary: writes are refused and builds are told to end.
fn step_down(w: &World) {
    w.catalog.gate().close();
    w.run(w.catalog.end_builds("primary no more"));
    assert!(w.catalog.running_builds().is_empty());
}

fn finish(w: &World) {
    w.catalog.gate().open();
    assert_eq!(w.run(w.catalog.resume_builds()).unwrap(), 1);
    while !w.catalog.running_builds().is_empty() {
        w.tasks.turn();
    }
    let coll = w.catalog.lookup(&ns("db.c")).unwrap();
    assert!(coll.index("a_1").is_some_and(|i| i.is_ready()));
    let mut expected = w.docs("db.c");
    expected.sort_by_key(|d| (d.get("a").unwrap().as_i64(), d.get("_id").unwrap().as_i64()));
    let expected: Vec<i64> = expected.iter().filter_map(|d| d.get("_id")?.as_i64()).collect();
    assert_eq!(w.ids_by_index("db.c", "a_1"), expected);
}

#[test]
fn a_build_that_a_step_down_cut_off_starts_over_when_the_node_is_primary_again() {
    let w = World::new();
    w.insert("db.c", (0..3000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
    for turns in 0..3 {
        let mut build = pin!(begun(&w));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(build.as_mut().poll(&mut cx).is_pending());
        (0..turns).for_each(|_| w.tasks.turn());
        w.update("db.c", 1, doc! { "_id": 1, "a": 100 + turns }).unwrap();
        step_down(&w);
        assert!(w.run(build).is_err(), "after {turns} turns");
        finish(&w);
        w.update("db.c", 2, doc! { "_id": 2, "a": 200 + turns }).unwrap();
        w.run(w.catalog.drop_indexes(&ns("db.c"), crate::DropWhich::Name("a_1"))).unwrap();
    }
}

#[test]
fn a_rollback_in_the_middle_of_a_build_leaves_whole_indexes() {
    // The start of the build is kept, or undone with the rest.
    for kept in [true, false] {
        let w = World::new();
        w.insert("db.c", (0..3000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
        let storage = w.catalog.storage().clone();
        storage.log().flush_once().unwrap();
        storage.set_stable(storage.last_committed());
        w.catalog.checkpoint().unwrap();
        let mut common = storage.last_committed();
        let mut build = pin!(begun(&w));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(build.as_mut().poll(&mut cx).is_pending());
        w.tasks.turn();
        if kept {
            common = storage.last_committed();
        }
        w.update("db.c", 1, doc! { "_id": 1, "a": 1000 }).unwrap();
        w.insert("db.c", vec![doc! { "_id": 5000, "a": 5 }]);
        storage.log().flush_once().unwrap();
        step_down(&w);
        assert!(w.run(build).is_err());
        w.catalog.roll_back(common).unwrap();
        assert_eq!(w.ids("db.c").len(), 3000);
        let coll = w.catalog.lookup(&ns("db.c")).unwrap();
        assert_eq!(coll.index("a_1").is_some(), kept);
        if kept {
            finish(&w);
        }
    }
}

#[test]
fn a_build_goes_on_where_the_node_is_primary_again_before_it_has_stopped() {
    let w = World::new();
    w.insert("db.c", (0..3000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
    let mut build = pin!(begun(&w));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(build.as_mut().poll(&mut cx).is_pending());
    w.tasks.turn();
    w.catalog.gate().close();
    let mut ending = pin!(w.catalog.end_builds("primary no more"));
    assert!(ending.as_mut().poll(&mut cx).is_pending());
    finish(&w);
    let aborted =
        w.log().iter().any(|(_, o)| o.iter().next().is_some_and(|(name, _)| name == "abortIndexBuild"));
    assert!(!aborted);
    assert!(w.run(build).is_err());
}

/// Applies what `a` has logged after `from`, as a member that follows does.
fn follow(a: &World, b: &World, from: &mut Timestamp) {
    let mut log = a.catalog.storage().log().read(std::ops::Bound::Excluded(*from), false);
    while let Some((ts, entry)) = log.next().unwrap() {
        let view = EntryView::parse(RawDoc::trusted(&entry)).unwrap();
        b.run(b.catalog.settle_builds(&view));
        b.catalog.apply_entry(&view, Applying::Steady).unwrap();
        b.catalog.storage().log().publish(ts);
        *from = ts;
    }
}
fn until_ready(w: &World) {
    while !w.catalog.builds().iter().all(|b| b.ready) {
        w.tasks.turn();
    }
}

#[test]
fn a_follower_builds_beside_what_it_applies() {
    for unique in [false, true] {
        let (a, b) = (World::new(), World::new());
        b.catalog.gate().close();
        a.catalog.judge_builds();
        b.catalog.judge_builds();
        a.insert("db.c", (0..5000).map(|i| doc! { "_id": i, "a": i }).collect());
        let mut at = Timestamp::ZERO;
        let spec = doc! { "key": { "a": 1 }, "name": "a_1", "unique": unique }.to_raw();
        let specs: [&RawDoc; 1] = [&spec];
        let c = ns("db.c");
        let mut build = pin!(a.catalog.create_indexes(&c, &specs, &Uninterrupted));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(build.as_mut().poll(&mut cx).is_pending());
        follow(&a, &b, &mut at);
        assert_eq!(b.catalog.builds().len(), 1);
        for turn in 0..8 {
            // A value moves from one document to another, and lists come and go.
            a.update("db.c", 10 + turn, doc! { "_id": 10 + turn, "a": 100_000 + turn }).unwrap();
            a.update("db.c", 4000 + turn, doc! { "_id": 4000 + turn, "a": [10 + turn, 200_000 + turn] })
                .unwrap();
            a.delete("db.c", 2000 + turn).unwrap();
            a.insert("db.c", vec![doc! { "_id": 9000 + turn, "a": 2000 + turn }]);
            follow(&a, &b, &mut at);
            b.tasks.turn();
            a.tasks.turn();
        }
        until_ready(&b);
        until_ready(&a);
        // Left for the end.
        a.update("db.c", 77, doc! { "_id": 77, "a": 300_000 }).unwrap();
        follow(&a, &b, &mut at);
        assert!(!b.catalog.lookup(&c).unwrap().index("a_1").unwrap().is_ready());
        let id = a.catalog.builds()[0].uuid;
        a.catalog.permit_build(id);
        b.catalog.permit_build(id);
        a.run(build).unwrap();
        assert!(b.catalog.is_unfinished(id), "only the log makes it ready");
        follow(&a, &b, &mut at);
        assert!(!b.catalog.is_unfinished(id) && b.catalog.builds().is_empty());
        let index = b.catalog.lookup(&c).unwrap().index("a_1").unwrap().clone();
        assert!(index.state.seen.is_multikey());
        assert_eq!(b.ids_by_index("db.c", "a_1"), a.ids_by_index("db.c", "a_1"));
        assert_eq!(b.ids_by_index("db.c", "a_1").len(), 5008);
    }
}

#[test]
fn a_follower_whose_part_failed_makes_the_index_where_it_is_committed() {
    let (a, b) = (World::new(), World::new());
    b.catalog.gate().close();
    a.catalog.judge_builds();
    b.catalog.judge_builds();
    a.insert("db.c", (0..3000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
    let mut at = Timestamp::ZERO;
    let mut build = pin!(begun(&a));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(build.as_mut().poll(&mut cx).is_pending());
    follow(&a, &b, &mut at);
    b.run(b.catalog.end_builds("for a while"));
    a.update("db.c", 5, doc! { "_id": 5, "a": 50 }).unwrap();
    until_ready(&a);
    a.catalog.permit_build(a.catalog.builds()[0].uuid);
    a.run(build).unwrap();
    follow(&a, &b, &mut at);
    assert_eq!(b.ids_by_index("db.c", "a_1"), a.ids_by_index("db.c", "a_1"));
}

#[test]
fn a_build_that_is_aborted_in_the_log_ends_on_a_follower() {
    let (a, b) = (World::new(), World::new());
    b.catalog.gate().close();
    a.catalog.judge_builds();
    a.insert("db.c", (0..3000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
    let mut at = Timestamp::ZERO;
    let mut build = pin!(begun(&a));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(build.as_mut().poll(&mut cx).is_pending());
    follow(&a, &b, &mut at);
    b.tasks.turn();
    a.catalog.permit_abort(a.catalog.builds()[0].uuid);
    a.run(a.catalog.drop_indexes(&ns("db.c"), crate::DropWhich::Name("a_1"))).unwrap();
    assert!(a.run(build).is_err());
    follow(&a, &b, &mut at);
    assert!(b.catalog.builds().is_empty());
    assert!(b.catalog.lookup(&ns("db.c")).unwrap().index("a_1").is_none());
}

/// A wish to give a build up is no end of its task: a member that cannot tell the log has its part all the same.
#[test]
fn a_build_that_cannot_be_given_up_any_more_goes_on() {
    let w = World::new();
    w.catalog.judge_builds();
    w.insert("db.c", (0..5000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
    for (turns, permitted) in (0..8).flat_map(|n| [(n, false), (n, true)]) {
        let mut build = pin!(begun(&w));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(build.as_mut().poll(&mut cx).is_pending());
        (0..turns).for_each(|_| w.tasks.turn());
        let id = w.catalog.builds()[0].uuid;
        let c = ns("db.c");
        let mut drop = pin!(w.catalog.drop_indexes(&c, crate::DropWhich::Name("a_1")));
        assert!(drop.as_mut().poll(&mut cx).is_pending());
        assert!(w.catalog.builds()[0].unwanted);
        w.catalog.gate().close();
        if permitted {
            w.catalog.permit_abort(id);
        }
        w.tasks.turn();
        w.catalog.keep_build(id);
        assert_eq!(w.run(drop).unwrap_err().code.0, 10107);
        until_ready(&w);
        assert!(!w.catalog.builds()[0].unwanted, "after {turns} turns");
        w.catalog.gate().open();
        w.catalog.permit_build(id);
        w.run(build).unwrap();
        assert_eq!(w.ids_by_index("db.c", "a_1").len(), 5000, "after {turns} turns");
        w.run(w.catalog.drop_indexes(&c, crate::DropWhich::Name("a_1"))).unwrap();
    }
}

#[test]
fn a_build_is_given_up_when_that_is_permitted_and_not_before() {
    let w = World::new();
    w.catalog.judge_builds();
    w.insert("db.c", (0..5000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
    for turns in 0..8 {
        let mut build = pin!(begun(&w));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(build.as_mut().poll(&mut cx).is_pending());
        (0..turns).for_each(|_| w.tasks.turn());
        let id = w.catalog.builds()[0].uuid;
        let c = ns("db.c");
        let mut drop = pin!(w.catalog.drop_indexes(&c, crate::DropWhich::Name("a_1")));
        // What may be committed is not, once somebody wants it away.
        w.catalog.permit_build(id);
        for _ in 0..10 {
            assert!(drop.as_mut().poll(&mut cx).is_pending());
            w.tasks.turn();
        }
        assert!(w.catalog.is_unfinished(id));
        w.catalog.permit_abort(id);
        w.run(drop).unwrap();
        assert_eq!(w.run(build).unwrap_err().code.0, 276, "after {turns} turns");
        assert!(w.catalog.lookup(&c).unwrap().index("a_1").is_none());
    }
}

/// Writers that are not decided yet have left what they did in the side table of a build whose task is replaced.
#[test]
fn a_prepared_transaction_reaches_a_build_that_starts_over() {
    let w = World::new();
    w.catalog.judge_builds();
    w.insert("db.c", (0..3000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
    let mut build = pin!(begun(&w));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(build.as_mut().poll(&mut cx).is_pending());
    let lsid = doc! { "id": pando_bson::Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] }) };
    let lsid = lsid.to_raw();
    let id = (pando_base::SessionId::of([7; 16]), 1);
    let mut unit = w.catalog.begin_transaction(ReadAt::Latest, id).unwrap();
    let coll = w.catalog.lookup(&ns("db.c")).unwrap();
    let new = doc! { "_id": 7000, "a": [3, 77] }.to_raw();
    w.catalog.insert_within(&mut unit, &WriteOp::default(), &coll, &new).unwrap();
    let prepared = w.run(w.catalog.prepare_transaction(unit, &lsid, id, Vec::new(), None)).unwrap();
    until_ready(&w);
    w.run(w.catalog.end_builds("for a while"));
    assert!(w.run(build).is_err());
    assert_eq!(w.run(w.catalog.resume_builds()).unwrap(), 1);
    until_ready(&w);
    w.catalog.decide_prepared(&lsid, &id, Some(prepared.ts)).unwrap();
    w.catalog.permit_build(w.catalog.builds()[0].uuid);
    while !w.catalog.running_builds().is_empty() {
        w.tasks.turn();
    }
    let ids = w.ids_by_index("db.c", "a_1");
    assert_eq!((ids.len(), *ids.last().unwrap()), (3002, 7000));
    let index = w.catalog.lookup(&ns("db.c")).unwrap().index("a_1").unwrap().clone();
    assert!(index.state.seen.is_multikey(), "known from the writer");
}

/// What is left of a build whose task ended without a word, or that nobody has taken up yet, is an index build for all that: whoever wants none
/// waits until the log says that it is given up.
#[test]
fn builds_that_nobody_works_on_are_given_up_too() {
    for restarts in [true, false] {
        let mut w = World::new();
        w.insert("db.c", (0..3000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
        {
            let mut build = pin!(begun(&w));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(build.as_mut().poll(&mut cx).is_pending());
            if !restarts {
                w.run(w.catalog.end_builds("for a while"));
                assert!(w.run(build).is_err());
            }
        }
        if restarts {
            w = w.reopen();
        }
        assert_eq!(w.catalog.builds().len(), 0);
        assert_eq!(w.catalog.lookup(&ns("db.c")).unwrap().building_indexes().len(), 1);
        w.run(w.catalog.abort_builds(&ns("db.c"), "the tenant moves")).unwrap();
        assert!(w.catalog.lookup(&ns("db.c")).unwrap().index("a_1").is_none(), "restarts: {restarts}");
        let (_, last) = w.log().pop().unwrap();
        assert_eq!(last.iter().next().map(|(name, _)| name), Some("abortIndexBuild"));
    }
}

/// A replay makes indexes at its end that the log says are ready. What has taken the name of one that was dropped again is not ready.
#[test]
fn a_build_with_the_name_of_a_dropped_index_is_unfinished_behind_a_replay() {
    for rolls_back in [false, true] {
        let mut w = World::new();
        w.insert("db.c", (0..3000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
        let storage = w.catalog.storage().clone();
        storage.log().flush_once().unwrap();
        storage.set_stable(storage.last_committed());
        w.catalog.checkpoint().unwrap();
        w.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
        w.run(w.catalog.drop_indexes(&ns("db.c"), crate::DropWhich::Name("a_1"))).unwrap();
        {
            let mut build = pin!(begun(&w));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(build.as_mut().poll(&mut cx).is_pending());
            if rolls_back {
                let common = storage.last_committed();
                w.insert("db.c", vec![doc! { "_id": 5000, "a": 5 }]);
                storage.log().flush_once().unwrap();
                step_down(&w);
                assert!(w.run(build).is_err());
                w.catalog.roll_back(common).unwrap();
            }
        }
        drop(storage);
        if !rolls_back {
            w = w.reopen();
        }
        let unfinished = w.catalog.lookup(&ns("db.c")).unwrap().building_indexes().len();
        assert_eq!(unfinished, 1, "rolls back: {rolls_back}");
        finish(&w);
    }
}

/// A replay makes an index that the log says is ready only at its end. Who comes back to a moment before that end, by a checkpoint or by a
/// rollback, and does not read the entry again, makes it then.
#[test]
fn an_index_that_a_replay_has_made_is_ready_behind_the_next_one_too() {
    for rolls_back in [false, true] {
        let mut w = World::new();
        w.insert("db.c", (0..3000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
        w.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
        let committed = w.catalog.storage().last_committed();
        w.insert("db.c", vec![doc! { "_id": 5000, "a": 5 }]);
        w = w.reopen();
        assert_eq!(w.ids_by_index("db.c", "a_1").len(), 3001);
        let storage = w.catalog.storage().clone();
        storage.set_stable(committed);
        w.catalog.checkpoint().unwrap();
        if rolls_back {
            w.catalog.gate().close();
            w.catalog.roll_back(committed).unwrap();
        } else {
            drop(storage);
            w = w.reopen();
        }
        let coll = w.catalog.lookup(&ns("db.c")).unwrap();
        assert!(coll.index("a_1").is_some_and(|i| i.is_ready()), "rolls back: {rolls_back}");
        assert_eq!(w.ids_by_index("db.c", "a_1").len(), if rolls_back { 3000 } else { 3001 });
    }
}

/// The primary that has begun it is none any more, and who goes on carries the same entry out again.
#[test]
fn an_index_that_another_set_has_told_is_ready_behind_an_earlier_attempt() {
    let (a, w) = (World::new(), World::new());
    a.insert("db.c", (0..100).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
    a.index("db.c", doc! { "key": { "a": 1 }, "name": "a_1" }).unwrap();
    let uuid = a.catalog.lookup(&ns("db.c")).unwrap().uuid;
    w.run(w.catalog.create_as(&ns("db.c"), Default::default(), uuid)).unwrap();
    w.insert("db.c", (0..3000).map(|i| doc! { "_id": i, "a": i % 7 }).collect());
    {
        let mut build = pin!(begun(&w));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(build.as_mut().poll(&mut cx).is_pending());
    }
    let w = w.reopen();
    assert_eq!(w.catalog.lookup(&ns("db.c")).unwrap().building_indexes().len(), 1);
    let mut log = a.catalog.storage().log().read(std::ops::Bound::Unbounded, false);
    let mut told = 0;
    while let Some((_, entry)) = log.next().unwrap() {
        let view = EntryView::parse(RawDoc::trusted(&entry)).unwrap();
        if view.command().is_some_and(|c| c.name() == "commitIndexBuild") {
            w.run(w.catalog.of_other_set().define_as_told(&view, &Uninterrupted)).unwrap();
            told += 1;
        }
    }
    assert_eq!(told, 1);
    let coll = w.catalog.lookup(&ns("db.c")).unwrap();
    assert!(coll.index("a_1").is_some_and(|i| i.is_ready()));
    assert_eq!(w.ids_by_index("db.c", "a_1").len(), 3000);
}
