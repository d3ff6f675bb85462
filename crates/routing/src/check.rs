//! The judgement of a shard on a request's version: answer it, or tell the sender that one of both is out of date (SH-PROTO-2).

use crate::mutants::{Mutant, broken};
use crate::version::ChunkVersion;

/// What a shard knows of its own part of a collection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Known {
    /// Nothing yet: it has just started or stepped up, or was told to forget.
    Nothing,
    Unsharded,
    /// The version of its part; `0|0` when it owns nothing.
    Sharded(ChunkVersion),
}

impl Known {
    pub fn version(self) -> Option<ChunkVersion> {
        match self {
            Known::Nothing => None,
            Known::Unsharded => Some(ChunkVersion::UNSHARDED),
            Known::Sharded(v) => Some(v),
        }
    }
}

/// A change of ownership that is about to happen (SH-PROTO-4): writes wait first, then everything does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Section {
    BlocksWrites,
    BlocksAll,
}

impl Section {
    pub fn blocks(self, access: Access) -> bool {
        match self {
            Section::BlocksAll => true,
            Section::BlocksWrites => access == Access::Write && !broken(Mutant::WriteInSection),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    Read,
    Write,
}

/// What comes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    Go,
    /// Told to the sender when the section has ended.
    InSection,
    /// This shard must ask the config servers first; the sender tries again.
    NotKnown,
    /// The versions place documents differently. If the sender's is newer, this shard refreshes.
    Mismatch {
        wanted: ChunkVersion,
    },
}

/// `received` is what the request carries; one without a version comes from somebody who asks this shard and no collection.
pub fn judge(
    received: Option<ChunkVersion>,
    known: Known,
    section: Option<Section>,
    access: Access,
) -> Verdict {
    let Some(received) = received.filter(|v| !v.is_ignored()) else { return Verdict::Go };
    if section.is_some_and(|section| section.blocks(access)) && !broken(Mutant::NobodyWaitsForSections) {
        return Verdict::InSection;
    }
    match known.version() {
        None => Verdict::NotKnown,
        Some(wanted) if received.places_as(wanted) => Verdict::Go,
        Some(wanted)
            if broken(Mutant::NewerSenderIsBelieved)
                && received.order(wanted) == Some(std::cmp::Ordering::Greater) =>
        {
            Verdict::Go
        }
        Some(wanted)
            if broken(Mutant::GenerationIsNotCompared)
                && received.placement.major == wanted.placement.major =>
        {
            Verdict::Go
        }
        Some(wanted) => Verdict::Mismatch { wanted },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::{Generation, Placement};
    use pando_base::Timestamp;
    use pando_bson::ObjectId;

    fn version(secs: u32, major: u32, minor: u32) -> ChunkVersion {
        let generation = Generation { epoch: ObjectId([0; 12]), timestamp: Timestamp::new(secs, 1) };
        ChunkVersion::new(generation, Placement::new(major, minor))
    }

    /// As 6.0.5 answered `find` with these versions, of a shard whose part is at `1|1`.
    #[test]
    fn judged_as_a_real_server_does() {
        let known = Known::Sharded(version(5, 1, 1));
        let of = |v| judge(Some(v), known, None, Access::Read);
        let mismatch = Verdict::Mismatch { wanted: version(5, 1, 1) };
        assert_eq!(of(version(5, 1, 1)), Verdict::Go);
        assert_eq!(of(version(5, 1, 0)), Verdict::Go);
        assert_eq!(of(version(5, 1, 9)), Verdict::Go);
        assert_eq!(of(version(5, 0, 9)), mismatch);
        assert_eq!(of(version(5, 2, 0)), mismatch);
        assert_eq!(of(version(4, 1, 1)), mismatch);
        assert_eq!(of(version(6, 1, 1)), mismatch);
        assert_eq!(of(ChunkVersion::UNSHARDED), mismatch);
        let unsharded = |v| judge(Some(v), Known::Unsharded, None, Access::Read);
        assert_eq!(unsharded(ChunkVersion::UNSHARDED), Verdict::Go);
        assert_eq!(unsharded(version(5, 1, 1)), Verdict::Mismatch { wanted: ChunkVersion::UNSHARDED });
        assert_eq!(judge(None, known, None, Access::Write), Verdict::Go);
        assert_eq!(of(ChunkVersion::IGNORED), Verdict::Go);
        assert_eq!(judge(Some(version(5, 1, 1)), Known::Nothing, None, Access::Read), Verdict::NotKnown);
    }

    #[test]
    fn a_section_holds_writes_first_and_then_reads() {
        let v = version(5, 1, 1);
        let of = |section, access| judge(Some(v), Known::Sharded(v), Some(section), access);
        assert_eq!(of(Section::BlocksWrites, Access::Read), Verdict::Go);
        assert_eq!(of(Section::BlocksWrites, Access::Write), Verdict::InSection);
        assert_eq!(of(Section::BlocksAll, Access::Read), Verdict::InSection);
    }
}
