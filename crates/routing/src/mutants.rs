//! Rules that can be switched off one at a time, in tests only (feature `mutants`): each must be missed by the model, or the
//! test that is said to prove it proves nothing.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A shard answers a sender that claims to know more than it does.
    NewerSenderIsBelieved,
    /// A collection that was dropped and created again is taken for the same one.
    GenerationIsNotCompared,
    /// Writes go on while a chunk is about to be given away.
    WriteInSection,
    /// Nothing waits for a section to end.
    NobodyWaitsForSections,
    /// Whoever asks joins a refresh that began before it learnt that its table was old.
    JoinAnyRefresh,
    /// A stale table is given out again.
    StaleIsGiven,
    /// A late answer of an attempt that was given up is taken.
    LateAnswerIsTaken,
    /// After a refresh that read torn chunks the next one reads changes only, again.
    TornIsNotReadAnew,
    /// Waiting callers are forgotten when a refresh fails.
    FailureAnswersNobody,
    /// Whoever has a table renewed is given the one that was there.
    RenewalIsNotWaitedFor,
}

impl Mutant {
    pub const ALL: [Mutant; 10] = [
        Mutant::NewerSenderIsBelieved,
        Mutant::GenerationIsNotCompared,
        Mutant::WriteInSection,
        Mutant::NobodyWaitsForSections,
        Mutant::JoinAnyRefresh,
        Mutant::StaleIsGiven,
        Mutant::LateAnswerIsTaken,
        Mutant::TornIsNotReadAnew,
        Mutant::FailureAnswersNobody,
        Mutant::RenewalIsNotWaitedFor,
    ];
}

#[cfg(feature = "mutants")]
mod switch {
    use super::Mutant;
    use std::cell::Cell;

    thread_local! {
        static BROKEN: Cell<Option<Mutant>> = const { Cell::new(None) };
    }
    /// Runs `f` with one rule switched off, on this thread.
    pub fn with<R>(mutant: Option<Mutant>, f: impl FnOnce() -> R) -> R {
        let before = BROKEN.replace(mutant);
        let out = f();
        BROKEN.set(before);
        out
    }
    /// Switches a rule off for everything that this thread runs from now on.
    pub fn activate(mutant: Option<Mutant>) {
        BROKEN.set(mutant);
    }
    pub(crate) fn broken(mutant: Mutant) -> bool {
        BROKEN.get() == Some(mutant)
    }
}

#[cfg(feature = "mutants")]
pub(crate) use switch::broken;
#[cfg(feature = "mutants")]
pub use switch::{activate, with};

#[cfg(not(feature = "mutants"))]
pub(crate) const fn broken(_: Mutant) -> bool {
    false
}
