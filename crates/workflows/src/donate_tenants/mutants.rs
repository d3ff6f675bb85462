//! Rules of a tenant migration's donor, switched off one at a time; the kit or the model must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Index builds are given up before a majority knows that there is a migration.
    BeginNotSafe,
    /// Index builds of tenants go on.
    BuildsGoOn,
    /// Tenants are blocked though the recipient copies still.
    NotConsistent,
    /// The recipient is asked before a majority knows that tenants are blocked.
    BlocksNotSafe,
    /// It is committed before the recipient has everything.
    NotCaughtUp,
    /// Somebody hears of a decision that no majority has.
    DecisionNotSafe,
    /// Somebody who waits no more turns the decision round.
    AbortedBehindCommit,
    /// It is forgotten, and the recipient does not know what was decided.
    ForgottenUntold,
    /// The document goes, and with it what tells clients where to go, before its time.
    GoneAtOnce,
    /// What stays here is thrown away.
    DiscardedOnAbort,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::BeginNotSafe,
        Mutant::BuildsGoOn,
        Mutant::NotConsistent,
        Mutant::BlocksNotSafe,
        Mutant::NotCaughtUp,
        Mutant::DecisionNotSafe,
        Mutant::AbortedBehindCommit,
        Mutant::ForgottenUntold,
        Mutant::GoneAtOnce,
        Mutant::DiscardedOnAbort,
    ];
}

crate::mutants::switch!(Mutant);
