//! Rules of `shardCollection`, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Reads go on while it is committed.
    ReadsGoOn,
    /// The commit is sent before a majority knows that it will be.
    NoPointOfNoReturn,
    /// A commit that was refused is taken for one that was not made.
    RefusalIsBelieved,
    /// The section ends before a majority knows that it may.
    OpensBeforeItIsSafe,
    /// Who gives up leaves the section behind.
    SectionStays,
    /// Two definitions of one name at a time.
    Unlocked,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::ReadsGoOn,
        Mutant::NoPointOfNoReturn,
        Mutant::RefusalIsBelieved,
        Mutant::OpensBeforeItIsSafe,
        Mutant::SectionStays,
        Mutant::Unlocked,
    ];
}

crate::mutants::switch!(Mutant);
