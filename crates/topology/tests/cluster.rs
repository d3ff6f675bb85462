//! Stories of small sets, on the simulated world.

mod world;

use pando_topology::Event;
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

fn terms(w: &World) -> i64 {
    (0..w.nodes.len()).map(|i| w.core(i).term()).max().expect("nodes")
}

#[test]
fn writes_go_on_for_a_majority_soon_after_a_kill() {
    let mut times = Vec::new();
    for seed in 100..140 {
        let mut w = World::new(seed, config_of(3));
        let p = settle(&mut w);
        w.advance(5000);
        w.crash(p);
        let before = w.checker.acknowledged.len();
        let took = w.advance_until(20_000, "an acknowledged write", |w| {
            w.newest_primary().is_some_and(|p| w.nodes[p].waits.is_empty())
                || w.checker.acknowledged.len() > before
        });
        let new = w.newest_primary().expect("a primary");
        w.write(new);
        let more =
            w.advance_until(20_000, "an acknowledged write", |w| w.checker.acknowledged.len() > before);
        times.push(took + more);
    }
    times.sort_unstable();
    assert!(times[20] < 1500, "median {} of {times:?}", times[20]);
}

#[test]
fn a_stopped_primary_keeps_its_office_for_a_while() {
    let mut w = World::new(7, config_of(3));
    let p = settle(&mut w);
    w.advance(5000);
    let term = terms(&w);
    // SIGSTOP: nothing is refused, nothing is answered; old connections may break elsewhere.
    w.isolate(p);
    for _ in 0..50 {
        for i in 0..3 {
            if i != p {
                w.feed(i, Event::ConnectionLost { to: p as i64 });
            }
        }
        w.advance(100);
    }
    assert_eq!(terms(&w), term, "no election within half an election timeout");
    w.heal();
    w.advance(15_000);
    assert_eq!((w.newest_primary(), terms(&w)), (Some(p), term));
}

#[test]
fn broken_connections_and_lost_packets_do_not_inflate_terms() {
    for seed in 0..10 {
        let mut w = World::new(seed, config_of(5));
        let p = settle(&mut w);
        w.advance(5000);
        let term = terms(&w);
        w.loss_per_mille = 100;
        w.delay_max = 100;
        // Ten minutes in which somebody's connection to the primary breaks every second.
        for k in 0..600u64 {
            let i = ((k + seed) % 5) as usize;
            if i != p {
                w.feed(i, Event::ConnectionLost { to: p as i64 });
            }
            w.write(p);
            w.advance(1000);
        }
        assert_eq!((w.newest_primary(), terms(&w)), (Some(p), term), "seed {seed}");
    }
}

#[test]
fn a_reset_way_to_the_primary_from_one_side_only_changes_nothing() {
    let mut w = World::new(3, config_of(3));
    let p = settle(&mut w);
    w.advance(5000);
    let term = terms(&w);
    let i = (p + 1) % 3;
    // n_i meets a firewall that rejects; the third member hears the primary well.
    w.rejects.insert((i, p));
    w.feed(i, Event::ConnectionLost { to: p as i64 });
    w.advance(9000);
    assert_eq!((w.newest_primary(), terms(&w)), (Some(p), term));
}
