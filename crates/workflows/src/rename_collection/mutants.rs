//! Rules of `renameCollection`, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// What was seen while everybody could take the new name counts.
    LooksOnce,
    /// Clients go on by both names.
    NotBlocked,
    /// Others rename before a majority has the sections.
    SectionNotSafe,
    /// Others rename before a majority knows that all of it will be.
    NoPointOfNoReturn,
    /// The sections go before a majority knows that they may.
    OpensBeforeItIsSafe,
    /// Commands carry no number: late ones are not told from others.
    NoNumber,
    /// A shard that refuses counts as one that has renamed.
    RefusedIsDone,
    /// Nobody tells the other shards that it is over.
    OthersStayBlocked,
    /// The source of a copy that was refused goes.
    DropsWhatWasNotCopied,
    /// Two definitions of one name at a time.
    Unlocked,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::LooksOnce,
        Mutant::NotBlocked,
        Mutant::SectionNotSafe,
        Mutant::NoPointOfNoReturn,
        Mutant::OpensBeforeItIsSafe,
        Mutant::NoNumber,
        Mutant::RefusedIsDone,
        Mutant::OthersStayBlocked,
        Mutant::DropsWhatWasNotCopied,
        Mutant::Unlocked,
    ];
}

crate::mutants::switch!(Mutant);
