//! Faults planted in the server (`pando_base::mutants`) that a row notices: where simulated sets need many seeds, this
//! takes seconds.

use super::parted::{Parted, bulk, same};
use super::{prepared, rollback};
use pando_base::mutants::{Mutant, activate};
use pando_sim::rig::words::*;

/// Fails where the row passes although the fault is there.
fn is_noticed_by(mutant: Mutant, row: fn()) {
    activate(Some(mutant));
    let noticed = std::panic::catch_unwind(row).is_err();
    activate(None);
    assert!(noticed, "{mutant:?} stays unseen");
}

#[test]
fn retryable_statements_forgotten_by_a_rollback_are_noticed() {
    let row = rollback::a_rolled_back_statement_runs_again_and_one_that_was_kept_does_not;
    is_noticed_by(Mutant::RetryableForgottenByRollback, row);
}

#[test]
fn sessions_that_are_kept_before_they_are_certain_are_noticed() {
    is_noticed_by(Mutant::SessionsKeptEarly, prepared::a_commit_that_a_checkpoint_saw_is_rolled_back_too);
}

/// What only the old primary wrote is gone soon after the rest of the set is back.
fn a_rollback_takes_little_time() {
    let p = Parted::after(
        100,
        |rig, p| drop(rig.ok(p, bulk(0, 3, w(3)))),
        |rig, old| drop(rig.ok(old, bulk(10_000, 3, w(1)))),
        |rig, new| drop(rig.ok(new, bulk(20_000, 3, majority()))),
    );
    p.rig.heal();
    p.rig.wait_ms(4000);
    assert!(same(&p.rig, p.old, p.new));
}

#[test]
fn an_entry_that_a_rollback_keeps_is_noticed() {
    a_rollback_takes_little_time();
    is_noticed_by(Mutant::RollbackKeepsOneEntry, a_rollback_takes_little_time);
}
