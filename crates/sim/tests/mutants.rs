//! Faults planted in the server: short runs of simulated sets notice them.
//!
//! Which level notices which fault, and after how many seeds: docs/design/2026-11-23-mutants.md.

use pando_base::mutants::{Mutant, activate};
use pando_sim::set::{Options, run};

/// Short seeds before a fault counts as unnoticed.
const SEEDS_MAX: u64 = 60;

fn short() -> Options {
    let (seconds, between_ms, longest_ms) = (60, 1500, 6000);
    Options { seconds, between_ms, longest_ms, pause_ms: 300, calm_ms: 2000, ..Options::default() }
}

/// The first seed that notices it.
fn noticed(mutant: Mutant) -> Option<u64> {
    activate(Some(mutant));
    let fails = |seed: &u64| {
        let run = || run(*seed, &short()).is_err();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(true)
    };
    let first = (1..=SEEDS_MAX).find(fails);
    activate(None);
    first
}

/// Those that a few short seeds are enough for; stories of the topology core and rows notice the others.
const OFTEN: [Mutant; 6] = [
    Mutant::CommitCountsNonVoters,
    Mutant::JournalBeforeSync,
    Mutant::VoteNotPersisted,
    Mutant::StableAheadOfCommit,
    Mutant::DurableAheadOfSync,
    Mutant::RollbackTooFar,
];

/// Which seeds notice them shifts with every change of the server; that some do must not.
#[test]
fn planted_faults_are_noticed() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found: Vec<_> = OFTEN.iter().map(|m| (*m, noticed(*m))).collect();
    std::panic::set_hook(hook);
    println!("{found:?}");
    let unseen: Vec<_> = found.iter().filter(|(_, seed)| seed.is_none()).collect();
    assert!(unseen.is_empty(), "no seed notices {unseen:?}");
}
