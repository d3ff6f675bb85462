//! Rules of `refineCollectionShardKey`, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Other owners are not asked whether an index serves.
    NobodyIsAsked,
    /// The commit is sent before a majority knows that it will be.
    NoPointOfNoReturn,
    /// A commit that was refused is taken for one that was not made.
    RefusalIsBelieved,
    /// Two definitions of one name at a time.
    Unlocked,
}

impl Mutant {
    pub const ALL: &[Mutant] =
        &[Mutant::NobodyIsAsked, Mutant::NoPointOfNoReturn, Mutant::RefusalIsBelieved, Mutant::Unlocked];
}

crate::mutants::switch!(Mutant);
