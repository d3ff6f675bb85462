//! Rules of `collMod`, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// What others are told does not say which definition it belongs to.
    Unnumbered,
    /// It is changed here before a majority has its number.
    NumberNotSafe,
    /// Others are told before a majority knows that they will be.
    NoPointOfNoReturn,
    /// Others change it before this shard, which may refuse.
    OthersFirst,
    /// Nobody is asked beforehand whether an index of theirs can become unique.
    NobodyIsAsked,
    /// Those are told that owned parts when it began.
    OwnersOfBefore,
    /// A shard that knows better who owns what counts as one that has changed its part.
    StaleIsOver,
    /// One owner is not told.
    OneIsLeftOut,
    /// This shard, which owned nothing when it was changed here, has got a range since.
    NotHereAgain,
    /// A shard that refuses counts as one that has changed its part.
    RefusalIsForgotten,
    /// Two definitions of one name at a time.
    Unlocked,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::Unnumbered,
        Mutant::NumberNotSafe,
        Mutant::NoPointOfNoReturn,
        Mutant::OthersFirst,
        Mutant::NobodyIsAsked,
        Mutant::OwnersOfBefore,
        Mutant::StaleIsOver,
        Mutant::OneIsLeftOut,
        Mutant::NotHereAgain,
        Mutant::RefusalIsForgotten,
        Mutant::Unlocked,
    ];
}

crate::mutants::switch!(Mutant);
