//! Three members keep their promises while they are killed one after another. More seeds: `sim set`.

use pando_sim::set::{Options, run};

#[test]
fn a_set_keeps_acknowledged_writes_and_one_primary_per_term() {
    let options = Options { users: 1, faults: 3, between_ms: 2000, ..Options::default() };
    match run(1, &options) {
        Ok(r) => assert!(r.acknowledged > 50 && r.terms > 1, "{r:?}"),
        Err(f) => {
            let log: Vec<_> = f.log.iter().rev().take(60).rev().collect();
            panic!("after {:?}: {:#?}\n{log:#?}", f.faults, f.problems);
        }
    }
}
