//! Members that follow a primary hold what it holds, whatever breaks on the way. More seeds: `sim replication`.

use pando_sim::replication::{Options, run};

#[test]
fn secondaries_agree_with_their_primary_after_faults() {
    for seed in 1..=2 {
        if let Err(f) = run(seed, &Options::default()) {
            let log: Vec<_> = f.log.iter().rev().take(60).rev().collect();
            panic!("seed {seed} after {:?}: {:#?}\n{log:#?}", f.faults, f.problems);
        }
    }
}

#[test]
fn a_seed_repeats_exactly() {
    let options = Options { faults: 3, ..Options::default() };
    let once = |seed| run(seed, &options).map_err(|f| f.problems).unwrap();
    assert_eq!(once(5), once(5));
}
