//! Rules of a shard split, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Index builds are given up before a majority knows that there is a split.
    BeginNotSafe,
    /// Index builds of tenants go on.
    BuildsGoOn,
    /// The set splits before a majority knows that tenants are blocked.
    BlocksNotSafe,
    /// It splits before the recipients have everything.
    NotCaughtUp,
    /// What was installed without an answer is taken for not installed.
    SplitNotLookedFor,
    /// Somebody who waits no more ends it when the recipients may have gone.
    AbortedBehindSplit,
    /// One recipient is enough.
    OneAcceptsForAll,
    /// A recipient that is the donor's member still is enough.
    AnyNameAccepted,
    /// The one with the least steps up.
    LeastAdvancedStepsUp,
    /// It is committed before the new set has an entry of its own on a majority.
    NotNoted,
    /// It is over before a majority knows the decision.
    DecisionNotSafe,
    /// The document goes, and with it what tells clients where to go, before its time.
    GoneAtOnce,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::BeginNotSafe,
        Mutant::BuildsGoOn,
        Mutant::BlocksNotSafe,
        Mutant::NotCaughtUp,
        Mutant::SplitNotLookedFor,
        Mutant::AbortedBehindSplit,
        Mutant::OneAcceptsForAll,
        Mutant::AnyNameAccepted,
        Mutant::LeastAdvancedStepsUp,
        Mutant::NotNoted,
        Mutant::DecisionNotSafe,
        Mutant::GoneAtOnce,
    ];
}

crate::mutants::switch!(Mutant);
