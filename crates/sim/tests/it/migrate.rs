//! Two sets between which tenants move keep their promises under every kind of fault. More and longer seeds: `sim migrate`.

use pando_sim::migrate::{Report, options, run};
use pando_sim::set::Options;

fn short() -> Options {
    Options { seconds: 25, users: 2, calm_ms: 1500, ..options() }
}

fn once(seed: u64) -> Report {
    run(seed, &short()).unwrap_or_else(|f| {
        let log: Vec<_> = f.log.iter().rev().take(60).rev().collect();
        panic!("seed {seed} after {:?}: {:#?}\n{log:#?}", f.faults, f.problems);
    })
}

#[test]
fn rules_and_promises_hold_over_three_seeds() {
    let reports: Vec<Report> = (1..=3).map(once).collect();
    let sum = |of: fn(&Report) -> usize| reports.iter().map(of).sum::<usize>();
    assert!(sum(|r| r.committed) > 6 && sum(|r| r.moved) > 3, "{reports:?}");
    assert!(sum(|r| r.acknowledged) > 100 && sum(|r| r.transactions) > 40, "{reports:?}");
    assert!(sum(|r| r.definitions) > 10 && sum(|r| r.turned_away) > 0, "{reports:?}");
}

#[test]
fn sets_are_merged_under_faults() {
    let merges = Options { merges: true, ..short() };
    let once = |seed| run(seed, &merges).unwrap_or_else(|f| panic!("seed {seed}: {:#?}", f.problems));
    let reports: Vec<Report> = (1..=3).map(once).collect();
    let sum = |of: fn(&Report) -> usize| reports.iter().map(of).sum::<usize>();
    // Two of each seed are without faults.
    assert!(sum(|r| r.merged) > 8 && sum(|r| r.tenants_merged) > 60, "{reports:?}");
    assert!(sum(|r| r.acknowledged) > 100 && sum(|r| r.nobodys) > 50, "{reports:?}");
}

#[test]
fn a_seed_repeats_event_for_event() {
    assert_eq!(once(4), once(4));
}
