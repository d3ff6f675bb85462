//! Versions of a collection's placement: what a sender says it knows, and what a shard compares it with (SH-VER-1 to SH-VER-5).
//!
//! A version has two parts. The *generation* changes when the collection becomes another one: dropped and created again,
//! sharded, resharded, renamed, its key refined. The *placement* grows within a generation: its major part when a chunk moves,
//! its minor part when chunks are split or merged, which changes no document's owner.

use crate::fields::Fields;
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use std::cmp::Ordering;
use std::fmt;

/// Which collection of this name. Two are the same if their timestamps are; a real server passes the epoch over too.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    pub epoch: ObjectId,
    pub timestamp: Timestamp,
}

impl PartialEq for Generation {
    fn eq(&self, other: &Generation) -> bool {
        self.timestamp == other.timestamp
    }
}
impl Eq for Generation {}
impl PartialOrd for Generation {
    fn partial_cmp(&self, other: &Generation) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Generation {
    fn cmp(&self, other: &Generation) -> Ordering {
        self.timestamp.cmp(&other.timestamp)
    }
}
impl std::hash::Hash for Generation {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.timestamp.hash(state);
    }
}

impl Generation {
    pub const NONE: Generation = Generation { epoch: ObjectId([0; 12]), timestamp: Timestamp::ZERO };
    const ANY: Generation = Generation { epoch: ObjectId([0xFF; 12]), timestamp: Timestamp::MAX };
}

/// Major and minor; stored as a timestamp, which orders the same way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Placement {
    pub major: u32,
    pub minor: u32,
}

impl Placement {
    pub const NONE: Placement = Placement { major: 0, minor: 0 };
    /// Of the first chunk of a collection.
    pub const FIRST: Placement = Placement { major: 1, minor: 0 };

    pub const fn new(major: u32, minor: u32) -> Placement {
        Placement { major, minor }
    }
    pub const fn timestamp(self) -> Timestamp {
        Timestamp::new(self.major, self.minor)
    }
    pub const fn from_timestamp(t: Timestamp) -> Placement {
        Placement::new(t.secs(), t.inc())
    }
    /// Of a chunk that has moved.
    pub fn after_move(self) -> Result<Placement> {
        let major = self.major.checked_add(1).ok_or_else(exhausted)?;
        Ok(Placement::new(major, 0))
    }
    /// Of a chunk that was cut from another one or put together.
    pub fn after_change(self) -> Result<Placement> {
        let minor = self.minor.checked_add(1).ok_or_else(exhausted)?;
        Ok(Placement::new(self.major, minor))
    }
}

fn exhausted() -> Error {
    Error::new(
        ErrorCode::Overflow,
        "the collection's chunks were changed 2^32 times; reshard it to begin anew",
    )
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{}", self.major, self.minor)
    }
}
impl fmt::Debug for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A version of a chunk, of a shard's part of a collection (its newest chunk), or of a collection (the newest of all).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChunkVersion {
    pub generation: Generation,
    pub placement: Placement,
}

impl ChunkVersion {
    /// Of what has no chunks.
    pub const UNSHARDED: ChunkVersion =
        ChunkVersion { generation: Generation::NONE, placement: Placement::NONE };
    /// Matches everything: the sender does not care who owns what.
    pub const IGNORED: ChunkVersion =
        ChunkVersion { generation: Generation::ANY, placement: Placement::NONE };

    pub const fn new(generation: Generation, placement: Placement) -> ChunkVersion {
        ChunkVersion { generation, placement }
    }
    pub fn is_unsharded(self) -> bool {
        self == ChunkVersion::UNSHARDED
    }
    pub fn is_ignored(self) -> bool {
        self == ChunkVersion::IGNORED
    }
    /// Which one is newer; nothing when one says that there are no chunks, which is older and newer than any.
    pub fn order(self, other: ChunkVersion) -> Option<Ordering> {
        match self.generation.cmp(&other.generation) {
            Ordering::Equal => Some(self.placement.cmp(&other.placement)),
            _ if self.is_unsharded() || other.is_unsharded() => None,
            generations => Some(generations),
        }
    }
    pub fn is_as_new_as(self, other: ChunkVersion) -> bool {
        matches!(other.order(self), Some(Ordering::Less | Ordering::Equal))
    }
    /// Whether all documents have the same owners by both: nothing has moved between them (asked of 6.0.5, which answers a
    /// sender whose minor part is too low or too high).
    pub fn places_as(self, other: ChunkVersion) -> bool {
        self.generation == other.generation && self.placement.major == other.placement.major
    }

    /// From `{e, t, v}`, as `shardVersion` has it.
    pub fn parse(doc: &RawDoc) -> Result<ChunkVersion> {
        if doc.is_empty() {
            return Err(Error::bad_value("Unexpected empty version array"));
        }
        let f = Fields { kind: "shardVersion", doc };
        let (timestamp, epoch) = (f.timestamp("t")?, f.object_id("e")?);
        let placement = Placement::from_timestamp(f.timestamp("v")?);
        Ok(ChunkVersion { generation: Generation { epoch, timestamp }, placement })
    }
    /// The value of `shardVersion` in a command.
    pub fn parse_argument(v: &Value<'_>) -> Result<ChunkVersion> {
        match v {
            Value::Document(doc) | Value::Array(doc) => ChunkVersion::parse(doc),
            _ => Err(Error::location(10065, "invalid parameter: expected an object (shardVersion)")),
        }
    }
    pub fn append(self, name: &str, out: &mut DocBuilder) {
        out.doc(name, |d| self.fill(d));
    }
    pub fn to_doc(self) -> DocBuf {
        let mut d = DocBuilder::new();
        self.fill(&mut d);
        d.finish()
    }
    fn fill(self, d: &mut DocBuilder) {
        d.timestamp("t", self.generation.timestamp).object_id("e", self.generation.epoch);
        d.timestamp("v", self.placement.timestamp());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(secs: u32, major: u32, minor: u32) -> ChunkVersion {
        let generation = Generation { epoch: ObjectId([secs as u8; 12]), timestamp: Timestamp::new(secs, 1) };
        ChunkVersion::new(generation, Placement::new(major, minor))
    }

    #[test]
    fn generations_come_before_placements() {
        assert_eq!(version(2, 1, 0).order(version(1, 9, 9)), Some(Ordering::Greater));
        assert_eq!(version(1, 2, 0).order(version(1, 1, 9)), Some(Ordering::Greater));
        assert_eq!(version(1, 2, 3).order(version(1, 2, 3)), Some(Ordering::Equal));
        assert_eq!(version(1, 2, 3).order(ChunkVersion::UNSHARDED), None);
        assert_eq!(ChunkVersion::UNSHARDED.order(ChunkVersion::UNSHARDED), Some(Ordering::Equal));
    }

    #[test]
    fn a_split_leaves_every_document_where_it_is() {
        assert!(version(1, 2, 3).places_as(version(1, 2, 9)));
        assert!(!version(1, 2, 3).places_as(version(1, 3, 3)));
        assert!(!version(1, 2, 3).places_as(version(2, 2, 3)));
        // Another epoch under the same timestamp is no other collection.
        let mut other = version(1, 2, 3);
        other.generation.epoch = ObjectId([9; 12]);
        assert!(version(1, 2, 3).places_as(other));
    }

    #[test]
    fn the_wire_form_comes_back_and_mistakes_are_named() {
        for v in [version(7, 8, 9), ChunkVersion::UNSHARDED, ChunkVersion::IGNORED] {
            assert_eq!(ChunkVersion::parse(&v.to_doc()).unwrap(), v);
        }
        let code = |v: Value<'_>| ChunkVersion::parse_argument(&v).unwrap_err().code.0;
        assert_eq!(code(Value::Int32(1)), 10065);
        assert_eq!(code(Value::Document(RawDoc::empty())), 2);
        let mut d = DocBuilder::new();
        d.timestamp("t", Timestamp::ZERO);
        assert_eq!(code(Value::Document(&d.finish())), 40414);
        let mut d = DocBuilder::new();
        d.i32("t", 1);
        assert_eq!(code(Value::Document(&d.finish())), 14);
    }

    #[test]
    fn placements_end_rather_than_begin_again() {
        assert!(Placement::new(u32::MAX, 0).after_move().is_err());
        assert!(Placement::new(1, u32::MAX).after_change().is_err());
        assert_eq!(Placement::new(1, 7).after_move().unwrap(), Placement::new(2, 0));
        assert_eq!(Placement::new(1, 7).after_change().unwrap(), Placement::new(1, 8));
    }
}
