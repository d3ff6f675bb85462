//! Rules of a migration's donor, switched off one at a time; the kit and the model must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A later primary goes on with what nobody recorded.
    CloneOutlivesItsRecord,
    /// Writes go on while the recipient takes the last ones.
    WritesGoOn,
    /// Reads go on while the range may be the recipient's already.
    ReadsGoOn,
    /// It commits before the recipient has everything.
    NotDrained,
    /// It commits before a majority knows that it may have.
    CommitNotSafe,
    /// It parts before a majority knows what was decided.
    DecisionNotSafe,
    /// A commit that was refused counts as never made.
    RefusedIsAborted,
    /// It asks who owns the range while a commit may still arrive.
    NoFence,
    /// Somebody who waits no more ends it behind the commit.
    AbortedBehindCommit,
    /// It forgets a committed migration before the recipient has.
    ForgetsFirst,
    /// What was moved stays behind.
    NothingIsDeleted,
    /// What was not moved is deleted.
    OwnRangeDeleted,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::CloneOutlivesItsRecord,
        Mutant::WritesGoOn,
        Mutant::ReadsGoOn,
        Mutant::NotDrained,
        Mutant::CommitNotSafe,
        Mutant::DecisionNotSafe,
        Mutant::RefusedIsAborted,
        Mutant::NoFence,
        Mutant::AbortedBehindCommit,
        Mutant::ForgetsFirst,
        Mutant::NothingIsDeleted,
        Mutant::OwnRangeDeleted,
    ];
}

crate::mutants::switch!(Mutant);
