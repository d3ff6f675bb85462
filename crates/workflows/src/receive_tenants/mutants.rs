//! Rules of a tenant migration's recipient, switched off one at a time; the kit or the model must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// It copies before a majority knows that nobody else may get at the tenants.
    CopiedUnguarded,
    /// It copies over what is there already.
    EmptyNotChecked,
    /// What is copied may be taken for somebody's own by the next primary.
    CopyNotNoted,
    /// What an earlier copy left stays.
    LeftoversStay,
    /// It says that it has everything before a majority of it has.
    AnsweredUnsafe,
    /// What was copied stays though the tenants do not come.
    LeftoversOnAbort,
    /// What was there before, or was never copied, goes.
    ClearsOthers,
    /// Somebody who waits no more turns the decision round.
    AbortedBehindCommit,
    /// The document goes before its time.
    GoneAtOnce,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::CopiedUnguarded,
        Mutant::EmptyNotChecked,
        Mutant::CopyNotNoted,
        Mutant::LeftoversStay,
        Mutant::AnsweredUnsafe,
        Mutant::LeftoversOnAbort,
        Mutant::ClearsOthers,
        Mutant::AbortedBehindCommit,
        Mutant::GoneAtOnce,
    ];
}

crate::mutants::switch!(Mutant);
