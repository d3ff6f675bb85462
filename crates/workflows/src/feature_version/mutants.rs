//! Rules of `setFeatureCompatibilityVersion`, switched off one at a time; the kit must notice each.

/// One rule switched off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutant {
    /// The last shard is not told.
    OneIsLeftOut,
    /// The second phase begins where only one shard has answered in the first.
    NobodyIsWaitedFor,
    /// What shards are told has no number.
    Unnumbered,
    /// The first phase begins before a majority knows the number.
    NumberIsNotSafe,
    /// Shards may be added meanwhile.
    ShardsMayJoin,
    /// It is given up for a shard that is gone.
    GoneIsARefusal,
    /// What a shard refuses is taken for done.
    RefusalIsBelieved,
    /// Shards begin before this node does.
    ShardsComeFirst,
    /// This node ends before shards do.
    EndsFirst,
}

impl Mutant {
    pub const ALL: &[Mutant] = &[
        Mutant::OneIsLeftOut,
        Mutant::NobodyIsWaitedFor,
        Mutant::Unnumbered,
        Mutant::NumberIsNotSafe,
        Mutant::ShardsMayJoin,
        Mutant::GoneIsARefusal,
        Mutant::RefusalIsBelieved,
        Mutant::ShardsComeFirst,
        Mutant::EndsFirst,
    ];
}

crate::mutants::switch!(Mutant);
