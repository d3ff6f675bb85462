//! A sharded cluster keeps its promises under every kind of fault. More and longer seeds: `sim cluster`.

use pando_sim::cluster::{Report, run};
use pando_sim::set::Options;

fn short() -> Options {
    let (seconds, between_ms, longest_ms) = (40, 3000, 8000);
    Options { seconds, between_ms, longest_ms, pause_ms: 500, calm_ms: 5000, ..Options::default() }
}

fn once(seed: u64) -> Report {
    once_with(seed, &short())
}
fn once_with(seed: u64, options: &Options) -> Report {
    run(seed, options).unwrap_or_else(|f| {
        let log: Vec<_> = f.log.iter().rev().take(60).rev().collect();
        panic!("seed {seed} after {:?}: {:#?}\n{log:#?}", f.faults, f.problems);
    })
}

#[test]
fn rules_and_promises_hold_over_two_seeds() {
    let reports: Vec<Report> = (1..=2).map(once).collect();
    let sum = |of: fn(&Report) -> usize| reports.iter().map(of).sum::<usize>();
    assert!(sum(|r| r.users.documents.inserted) > 40 && sum(|r| r.users.documents.scans) > 20, "{reports:?}");
    assert!(sum(|r| r.users.definitions.sharded) > 3 && sum(|r| r.users.looks) > 20, "{reports:?}");
    assert!(sum(|r| r.users.transfers) > 6 && sum(|r| r.users.acknowledged) > 20, "{reports:?}");
}

#[test]
fn a_seed_repeats_event_for_event() {
    assert_eq!(once(5), once(5));
}

/// Ranges and databases move between the shards all the time, while members of both, of the config servers and routers are killed and cut off: chunks
/// tile all keys after each change, a commit whose answer is lost is made once or not at all, and each document is owned once in the end.
#[test]
fn whatever_breaks_while_ranges_move_each_has_one_owner() {
    let moving = Options { moves: true, seconds: 60, ..short() };
    let reports: Vec<Report> = (1..=2).map(|seed| once_with(seed, &moving)).collect();
    let sum = |of: fn(&Report) -> usize| reports.iter().map(of).sum::<usize>();
    assert!(sum(|r| r.users.moves.moved) > 10, "{reports:?}");
    assert!(sum(|r| r.users.documents.inserted) > 40, "{reports:?}");
}
