//! Index builds that a change of role or a rollback cuts off.

use crate::Uninterrupted;
use crate::testing::{World, ns};
use pando_bson::{RawDoc, doc};
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
