//! Rules of `setClusterParameter`, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// The last shard is not told.
    OneIsLeftOut,
    /// It is over when shards have been told, whatever they say.
    NobodyIsWaitedFor,
    /// What shards are told has no number.
    Unnumbered,
    /// Shards are told before a majority knows the number.
    NumberIsNotSafe,
    /// Shards may be added meanwhile.
    ShardsMayJoin,
    /// A shard that is gone is told until it comes back.
    GoneIsWaitedFor,
    /// What a shard refuses is taken for done.
    RefusalIsBelieved,
    /// This node keeps nothing of it, so that shards that are added later are not told.
    NotKept,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::OneIsLeftOut,
        Mutant::NobodyIsWaitedFor,
        Mutant::Unnumbered,
        Mutant::NumberIsNotSafe,
        Mutant::ShardsMayJoin,
        Mutant::GoneIsWaitedFor,
        Mutant::RefusalIsBelieved,
        Mutant::NotKept,
    ];
}

crate::mutants::switch!(Mutant);
