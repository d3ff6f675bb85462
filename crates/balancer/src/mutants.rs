//! Rules of the balancer, switched off one at a time; the tests must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// Chunks that are marked as too large are moved all the same.
    JumboMoves,
    /// What is too large moves whatever the settings say.
    AllIsForced,
    /// A chunk that reaches over the end of a zone is moved as if it was in none.
    UncutMoves,
    /// Such chunks are never cut.
    NothingIsCut,
    /// All shards are taken as draining.
    NobodyStays,
    DrainingTakes,
    AnybodyTakes,
    /// The smallest difference is evened out.
    BackAndForth,
    /// A shard gives and takes as often as it comes.
    ManyAtOnce,
    /// What is too large is put together with its neighbours.
    JumboMerges,
    /// Chunks become one over the end of a zone.
    MergesOverZones,
    /// Whatever its size a chunk goes to its neighbour.
    LargeChunksMove,
}

impl Mutant {
    /// Those of putting chunks together.
    pub const OF_DEFRAGMENTATION: &[Mutant] =
        &[Mutant::JumboMerges, Mutant::MergesOverZones, Mutant::LargeChunksMove];
    /// Those of rounds.
    pub const ALL: &[Mutant] = &[
        Mutant::JumboMoves,
        Mutant::AllIsForced,
        Mutant::UncutMoves,
        Mutant::NothingIsCut,
        Mutant::NobodyStays,
        Mutant::DrainingTakes,
        Mutant::AnybodyTakes,
        Mutant::BackAndForth,
        Mutant::ManyAtOnce,
    ];
}

#[cfg(feature = "mutants")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}
/// Breaks the balancer of this thread.
#[cfg(feature = "mutants")]
pub fn activate(mutant: Option<Mutant>) {
    ACTIVE.set(mutant);
}
#[cfg(feature = "mutants")]
pub(crate) fn broken(mutant: Mutant) -> bool {
    ACTIVE.get() == Some(mutant)
}
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub(crate) const fn broken(_: Mutant) -> bool {
    false
}
