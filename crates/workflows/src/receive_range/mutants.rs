//! Rules of a migration's recipient, switched off one at a time; the kit and the model must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Documents come before a majority has the task to delete them.
    TaskNotSafe,
    /// A later primary goes on with what another one was given.
    GoesOnInAnotherLife,
    /// It says that it has everything before it has taken the last changes.
    NotDrained,
    /// It says so before a majority has everything.
    EnteredNotSafe,
    /// It takes reads and writes while the donor may still give up.
    StaysOpen,
    /// It goes by what the config servers say while a commit may still arrive.
    DonorNotAsked,
    /// Somebody who waits no more ends it when the donor counts on it.
    AbortedBehindEntered,
    /// What it was given stays behind, though the range is not its own.
    OrphansStay,
    /// What it was given is deleted, though the range is its own.
    ReceivedIsDeleted,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::TaskNotSafe,
        Mutant::GoesOnInAnotherLife,
        Mutant::NotDrained,
        Mutant::EnteredNotSafe,
        Mutant::StaysOpen,
        Mutant::DonorNotAsked,
        Mutant::AbortedBehindEntered,
        Mutant::OrphansStay,
        Mutant::ReceivedIsDeleted,
    ];
}

crate::mutants::switch!(Mutant);
