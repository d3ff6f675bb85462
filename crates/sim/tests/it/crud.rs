//! A few short runs of the CRUD scenario. `cargo run -p pando-sim -- --seeds 100` does more.

use pando_sim::crud::{CrudOptions, run};

const SHORT: CrudOptions = CrudOptions { lives: 3, users: 3, life_ms: 300, lying_disk: false };

#[test]
fn acknowledged_writes_survive_and_the_log_agrees() {
    let mut ends = std::collections::BTreeSet::new();
    for seed in 1..=6 {
        match run(seed, &SHORT) {
            Ok(report) => {
                assert!(report.acknowledged > 20, "{report:?}");
                ends.extend(report.ends);
            }
            Err(f) => panic!("seed {seed} after {:?}: {:#?}\n{:#?}", f.ends, f.problems, f.log),
        }
    }
    assert!(ends.len() >= 4, "{ends:?}");
}

#[test]
fn a_seed_repeats_event_for_event() {
    let (a, b) = (run(7, &SHORT), run(7, &SHORT));
    let (Ok(a), Ok(b)) = (a, b) else { panic!("seed 7 fails") };
    assert_eq!(a, b);
}

#[test]
fn a_disk_that_lies_about_syncs_is_found_out() {
    let options = CrudOptions { lying_disk: true, ..SHORT };
    let caught = (1..=4).filter(|seed| run(*seed, &options).is_err()).count();
    assert!(caught >= 3, "{caught} of 4");
}

/// Seeds that once found something, by what they found.
fn found(seed: u64, lives: u32) {
    if let Err(f) = run(seed, &CrudOptions { lives, ..CrudOptions::default() }) {
        panic!("seed {seed} after {:?}: {:#?}", f.ends, f.problems);
    }
}

#[test]
fn a_start_after_a_crash_within_an_index_build_was_refused_for_want_of_memory_seed_3() {
    found(3, 1);
}

#[test]
fn writers_were_refused_though_the_next_checkpoint_would_have_made_room_seed_2() {
    found(2, 5);
}

#[test]
fn a_failed_sync_of_an_index_builds_rows_did_not_stop_the_server_seed_23() {
    found(23, 1);
}
