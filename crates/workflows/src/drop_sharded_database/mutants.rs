//! Rules of a sharded `dropDatabase`, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Routers are sent to collections whose documents are gone.
    CollectionsStay,
    /// A command does not say which attempt it belongs to.
    NoNumber,
    /// The name may become another database before a majority knows that this one is gone.
    CommitNotSafe,
    /// Clients write into the database while it goes.
    DatabaseStaysOpen,
    /// And nobody may do so ever after.
    DatabaseStaysShut,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::CollectionsStay,
        Mutant::NoNumber,
        Mutant::CommitNotSafe,
        Mutant::DatabaseStaysOpen,
        Mutant::DatabaseStaysShut,
    ];
}

crate::mutants::switch!(Mutant);
