//! Stories of small sets, on the simulated world.

mod world;

use world::{World, config_of};

fn settle(w: &mut World) -> usize {
    w.advance_until(40_000, "a first primary", |w| w.primary().is_some());
    w.primary().expect("a primary")
}

#[test]
fn three_members_elect_one_primary_and_commit() {
    let mut w = World::new(1, config_of(3));
    let p = settle(&mut w);
    assert!(w.write(p));
    w.advance_until(3000, "the write is committed", |w| !w.checker.acknowledged.is_empty());
    w.advance(5000);
    let at = w.checker.acknowledged[0];
    for i in 0..3 {
        assert!(w.core(i).commit_point().op >= at, "n{i} learnt the commit point");
        assert_eq!(w.core(i).term(), w.core(p).term());
    }
}

#[test]
fn a_killed_primary_is_replaced_within_a_second_of_simulated_time() {
    let mut times = Vec::new();
    for seed in 0..40 {
        let mut w = World::new(seed, config_of(if seed % 2 == 0 { 3 } else { 5 }));
        let p = settle(&mut w);
        w.advance(5000);
        let term = w.core(p).term();
        w.write(p);
        w.crash(p);
        let took = w.advance_until(15_000, "a new primary", |w| w.newest_primary().is_some());
        let new = w.newest_primary().expect("a primary");
        assert!(w.core(new).term() <= term + 2);
        times.push(took);
    }
    times.sort_unstable();
    assert!(times[20] < 1000, "median {} of {times:?}", times[20]);
    assert!(times[39] < 4000, "{times:?}");
}
