//! Rules of the demo workflow, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// A number is counted before its document is there.
    CountsBeforeItWrites,
    /// The sum begins anew after a failover.
    SumForgotten,
    /// The pause between numbers is forgotten.
    RestForgotten,
    /// Nobody waits for a nudge.
    NobodyIsHeld,
    /// A number's document has another name each time it is put.
    TallyNamedByTime,
    /// The last number is left out.
    StopsOneEarly,
    /// A document is put before the state is safe.
    WritesFirst,
    /// Whoever wants it to end is heard in the middle.
    AbortedMidway,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::CountsBeforeItWrites,
        Mutant::SumForgotten,
        Mutant::RestForgotten,
        Mutant::NobodyIsHeld,
        Mutant::TallyNamedByTime,
        Mutant::StopsOneEarly,
        Mutant::WritesFirst,
        Mutant::AbortedMidway,
    ];
}

crate::mutants::switch!(Mutant);
