//! Rules of `movePrimary`, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Whoever finds that a clone was begun goes on with it, though nothing was recorded.
    CloneOutlivesItsRecord,
    /// Writes go on while what was recorded is given.
    WritesGoOn,
    /// Reads go on while it is committed.
    ReadsGoOn,
    /// The commit is sent before a majority knows that it will be.
    CommitNotSafe,
    /// A commit that was refused is taken for one that was not made.
    RefusalIsBelieved,
    /// The section ends before a majority knows that it may.
    OpensBeforeItIsSafe,
    /// Where it is given up, nobody tells the other shard to drop what it was given.
    CopiesStay,
    /// Two definitions of one database at a time.
    Unlocked,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::CloneOutlivesItsRecord,
        Mutant::WritesGoOn,
        Mutant::ReadsGoOn,
        Mutant::CommitNotSafe,
        Mutant::RefusalIsBelieved,
        Mutant::OpensBeforeItIsSafe,
        Mutant::CopiesStay,
        Mutant::Unlocked,
    ];
}

crate::mutants::switch!(Mutant);
