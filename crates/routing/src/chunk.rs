//! A chunk: a range of shard key values and the shard that owns it, as the config servers store it (SH-CAT-3).

use crate::fields::Fields;
use crate::shard_id::ShardId;
use crate::version::Placement;
use pando_base::{Result, Timestamp, limits, uuid::Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc};

/// Since when a shard owned a chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    pub valid_after: Timestamp,
    pub shard: ShardId,
}

/// A document of `config.chunks`: `[min, max)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    pub id: ObjectId,
    pub min: DocBuf,
    pub max: DocBuf,
    pub shard: ShardId,
    pub placement: Placement,
    /// Owners, the newest first; empty for chunks of collections from before histories.
    pub history: Vec<Owner>,
    /// Too large to be moved.
    pub jumbo: bool,
}

impl Chunk {
    pub fn parse(doc: &RawDoc) -> Result<Chunk> {
        let f = Fields { kind: "ChunkType", doc };
        let mut history = Vec::new();
        for e in f.optional_array("history")?.unwrap_or(RawDoc::empty()).iter().take(limits::CHUNK_OWNERS_MAX)
        {
            let one = Fields { kind: "ChunkHistory", doc: e.value().as_doc().unwrap_or(RawDoc::empty()) };
            let valid_after = one.timestamp("validAfter")?;
            history.push(Owner { valid_after, shard: ShardId::new(one.text("shard")?) });
        }
        Ok(Chunk {
            id: f.optional_object_id("_id")?.unwrap_or(ObjectId([0; 12])),
            min: f.document("min")?.to_buf(),
            max: f.document("max")?.to_buf(),
            shard: ShardId::new(f.text("shard")?),
            placement: Placement::from_timestamp(f.timestamp("lastmod")?),
            history,
            jumbo: f.flag("jumbo")?.unwrap_or(false),
        })
    }
    /// As stored, for the collection with this UUID.
    pub fn to_doc(&self, collection: Uuid) -> DocBuf {
        let mut d = DocBuilder::new();
        d.object_id("_id", self.id).uuid("uuid", &collection.0);
        d.raw_doc("min", &self.min).raw_doc("max", &self.max).str("shard", self.shard.as_str());
        d.timestamp("lastmod", self.placement.timestamp());
        if let Some(newest) = self.history.first() {
            d.timestamp("onCurrentShardSince", newest.valid_after);
        }
        d.array("history", |a| {
            for owner in &self.history {
                a.doc(|d| {
                    d.timestamp("validAfter", owner.valid_after).str("shard", owner.shard.as_str());
                });
            }
        });
        if self.jumbo {
            d.bool("jumbo", true);
        }
        d.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::doc;

    #[test]
    fn a_chunk_comes_back() {
        let owner = |secs, shard| Owner { valid_after: Timestamp::new(secs, 1), shard: ShardId::new(shard) };
        let chunk = Chunk {
            id: ObjectId([3; 12]),
            min: doc(r#"{"a": {"$minKey": 1}}"#),
            max: doc(r#"{"a": 7}"#),
            shard: ShardId::new("a"),
            placement: Placement::new(4, 2),
            history: vec![owner(9, "a"), owner(5, "b")],
            jumbo: true,
        };
        assert_eq!(Chunk::parse(&chunk.to_doc(Uuid([1; 16]))).unwrap(), chunk);
        // What 6.0.5 stores has no `onCurrentShardSince`.
        let older = doc(
            r#"{"_id": {"$oid": "6b07de6a4c9551e255f706dd"}, "min": {"a": {"$minKey": 1}}, "max": {"a": 7}, "shard": "sa",
                "lastmod": {"$timestamp": {"t": 1, "i": 0}},
                "history": [{"validAfter": {"$timestamp": {"t": 1795677802, "i": 158}}, "shard": "sa"}]}"#,
        );
        let older = Chunk::parse(&older).unwrap();
        assert!(older.placement == Placement::FIRST && older.history.len() == 1 && !older.jumbo);
        assert!(Chunk::parse(&doc(r#"{"min": {}, "max": {}, "shard": "a"}"#)).is_err());
    }
}
