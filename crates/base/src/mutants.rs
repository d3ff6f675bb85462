//! Faults planted in the server's shells, switched on one at a time in tests only (feature `mutants`): each must be noticed by
//! the simulated sets and by a quick test, or what is said to prove it proves nothing. The rules of the topology core have
//! switches of their own.

/// One fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Members without a vote count for the commit point.
    CommitCountsNonVoters,
    /// A voter compares what it has applied, not what it has written.
    VoteComparesApplied,
    /// `j: true` is acknowledged before the entry is synced.
    JournalBeforeSync,
    /// After a rollback a member still claims the positions it had.
    PositionsSurviveRollback,
    /// A reconfiguration does not wait for an entry of the primary's own term.
    ReconfigInForeignTerm,
    /// A vote is never written to disk.
    VoteNotPersisted,
    /// The stable timestamp is what is written without holes, committed or not.
    StableAheadOfCommit,
    /// A rollback keeps the first entry that it should undo.
    RollbackKeepsOneEntry,
    /// The table of retryable writes stays empty after a rollback.
    RetryableForgottenByRollback,
    /// Entries that come while the log is being synced count as synced with it.
    DurableAheadOfSync,
    /// A rollback goes one entry further back than it must.
    RollbackTooFar,
    /// A checkpoint keeps what sessions have done although it may still be rolled back.
    SessionsKeptEarly,
}

impl Mutant {
    pub const ALL: [Mutant; 12] = [
        Mutant::CommitCountsNonVoters,
        Mutant::VoteComparesApplied,
        Mutant::JournalBeforeSync,
        Mutant::PositionsSurviveRollback,
        Mutant::ReconfigInForeignTerm,
        Mutant::VoteNotPersisted,
        Mutant::StableAheadOfCommit,
        Mutant::RollbackKeepsOneEntry,
        Mutant::RetryableForgottenByRollback,
        Mutant::DurableAheadOfSync,
        Mutant::RollbackTooFar,
        Mutant::SessionsKeptEarly,
    ];
}

#[cfg(feature = "mutants")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault in what this thread runs.
#[cfg(feature = "mutants")]
pub fn activate(mutant: Option<Mutant>) {
    ACTIVE.set(mutant);
}

#[cfg(feature = "mutants")]
pub fn broken(mutant: Mutant) -> bool {
    ACTIVE.get() == Some(mutant)
}
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn broken(_: Mutant) -> bool {
    false
}
