//! Rules of `drop`, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Writes go on while it is dropped.
    WritesGoOn,
    /// It goes on before a majority has the section.
    SectionNotSafe,
    /// Parts go while routers are sent to them.
    PartsFirst,
    /// A command does not say which attempt it belongs to.
    NoNumber,
    /// A shard that refuses counts as one that has dropped its part.
    RefusedIsGone,
    /// The section ends before a majority knows that it may.
    OpensBeforeItIsSafe,
    /// Two definitions of one name at a time.
    Unlocked,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::WritesGoOn,
        Mutant::SectionNotSafe,
        Mutant::PartsFirst,
        Mutant::NoNumber,
        Mutant::RefusedIsGone,
        Mutant::OpensBeforeItIsSafe,
        Mutant::Unlocked,
    ];
}

crate::mutants::switch!(Mutant);
