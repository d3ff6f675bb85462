//! Rules of range deletion, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Readers on secondaries have no time.
    NoDelay,
    /// Ranges are deleted side by side.
    SeveralAtOnce,
    /// What this shard owns is deleted.
    OwnRangeDeleted,
    /// It ends behind the first helping.
    OneHelping,
    /// It ends where the last helping ends.
    NotLookedAgain,
    /// It does not look for readers again in another life.
    ReadersForgotten,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::NoDelay,
        Mutant::SeveralAtOnce,
        Mutant::OwnRangeDeleted,
        Mutant::OneHelping,
        Mutant::NotLookedAgain,
        Mutant::ReadersForgotten,
    ];
}

crate::mutants::switch!(Mutant);
