//! A set keeps its promises under every kind of fault. More and longer seeds: `sim set`.

use pando_sim::set::{Options, Report, run};

fn short() -> Options {
    let (seconds, between_ms, longest_ms) = (25, 2000, 8000);
    Options { seconds, between_ms, longest_ms, pause_ms: 300, calm_ms: 2000, ..Options::default() }
}

fn once(seed: u64) -> Report {
    run(seed, &short()).unwrap_or_else(|f| {
        let log: Vec<_> = f.log.iter().rev().take(60).rev().collect();
        panic!("seed {seed} after {:?}: {:#?}\n{log:#?}", f.faults, f.problems);
    })
}

#[test]
fn rules_and_promises_hold_over_eight_seeds() {
    let reports: Vec<Report> = (1..=8).map(once).collect();
    let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
    assert!(sum(|r| r.elections) > 12 && sum(|r| r.acknowledged as u64) > 400, "{reports:?}");
    assert!(sum(|r| r.transfers as u64) > 120, "{reports:?}");
    // Two for each set at its beginning, and new machines.
    assert!(sum(|r| r.initial_syncs) > 18, "{reports:?}");
}

#[test]
fn a_seed_repeats_event_for_event() {
    assert_eq!(once(9), once(9));
}
