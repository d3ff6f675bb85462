//! The metadata as it is stored: documents, and what they say.

use pando_access::{Change, InternalCollections};
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid, limits};
use pando_bson::{DocBuf, RawDoc, Value};
use pando_query::source::Direction;
use pando_routing::zones::ZoneRange;
use pando_routing::{Chunk, ChunkRef, CollectionEntry, Placement, RoutingTable, ShardId};

/// A collection of `config`.
pub fn ns(collection: &str) -> Namespace {
    Namespace::unchecked("config", collection)
}

/// Indexes of `config.chunks`.
pub(crate) const BY_START: &str = "uuid_1_min_1";
pub(crate) const BY_LASTMOD: &str = "uuid_1_lastmod_1";
/// Index of `config.tags`.
pub(crate) const TAGS_BY_START: &str = "ns_1_min_1";

/// What is stored now, as this node sees it.
#[derive(Clone)]
pub struct Metadata(pub(crate) InternalCollections);

/// A sharded collection with its chunks, and the document that says so.
pub(crate) struct Stored {
    pub(crate) doc: DocBuf,
    pub(crate) table: RoutingTable,
}

impl Metadata {
    pub fn shards(&self) -> Result<Vec<DocBuf>> {
        self.0.all(&ns("shards"), pando_storage::ReadAt::Latest)
    }
    pub fn shard(&self, id: &str) -> Result<Option<DocBuf>> {
        self.0.named(&ns("shards"), id)
    }
    pub fn databases(&self) -> Result<Vec<DocBuf>> {
        self.0.all(&ns("databases"), pando_storage::ReadAt::Latest)
    }
    pub fn database(&self, name: &str) -> Result<Option<DocBuf>> {
        self.0.named(&ns("databases"), name)
    }
    /// The entry of a sharded collection.
    pub fn collection(&self, name: &str) -> Result<Option<DocBuf>> {
        self.0.named(&ns("collections"), name)
    }
    pub fn setting(&self, name: &str) -> Result<Option<DocBuf>> {
        self.0.named(&ns("settings"), name)
    }
    pub(crate) fn version(&self) -> Result<Option<DocBuf>> {
        self.0.first(&ns("version"))
    }
    /// In the order of their lower bounds.
    pub(crate) fn chunks(&self, uuid: Uuid) -> Result<Vec<DocBuf>> {
        let uuid = Value::Binary { subtype: 4, bytes: &uuid.0 };
        self.0.by_index(&ns("chunks"), BY_START, &[uuid], Direction::Forward, usize::MAX)
    }
    /// The chunk with this lower bound.
    pub(crate) fn chunk(&self, uuid: Uuid, min: &RawDoc) -> Result<Option<DocBuf>> {
        let key = [Value::Binary { subtype: 4, bytes: &uuid.0 }, Value::Document(min)];
        Ok(self.0.by_index(&ns("chunks"), BY_START, &key, Direction::Forward, 1)?.pop())
    }
    /// The chunk that was changed last.
    pub(crate) fn newest_chunk(&self, uuid: Uuid) -> Result<Option<DocBuf>> {
        let uuid = Value::Binary { subtype: 4, bytes: &uuid.0 };
        Ok(self.0.by_index(&ns("chunks"), BY_LASTMOD, &[uuid], Direction::Backward, 1)?.pop())
    }
    /// Those that were changed behind this one, the newest first.
    pub(crate) fn chunks_behind(&self, uuid: Uuid, placement: Placement) -> Result<Vec<DocBuf>> {
        let uuid = [Value::Binary { subtype: 4, bytes: &uuid.0 }];
        let is_newer = |doc: &RawDoc| match doc.get("lastmod") {
            Some(Value::Timestamp(t)) => Placement::from_timestamp(t) > placement,
            _ => false,
        };
        let (ns, mut max) = (ns("chunks"), limits::CHUNKS_LOOKED_AT_FIRST);
        loop {
            let mut found = self.0.by_index(&ns, BY_LASTMOD, &uuid, Direction::Backward, max)?;
            let newer = found.iter().take_while(|doc| is_newer(doc)).count();
            if newer < found.len() || found.len() < max {
                found.truncate(newer);
                return Ok(found);
            }
            max = max.saturating_mul(8);
        }
    }
    pub(crate) fn tags(&self, of: &str) -> Result<Vec<DocBuf>> {
        let key = [Value::String(of)];
        self.0.by_index(&ns("tags"), TAGS_BY_START, &key, Direction::Forward, usize::MAX)
    }
    pub fn zone_ranges(&self, of: &str) -> Result<Vec<ZoneRange>> {
        self.tags(of)?.iter().map(|doc| ZoneRange::parse(doc)).collect()
    }
    /// How many documents `which` holds of.
    pub(crate) fn count(&self, collection: &str, which: impl Fn(&RawDoc) -> bool) -> Result<i64> {
        let mut n = 0;
        self.0.look_through(&ns(collection), |doc| {
            n += i64::from(which(doc));
            Ok(true)
        })?;
        Ok(n)
    }
}

impl Stored {
    pub(crate) fn entry(&self) -> &CollectionEntry {
        &self.table.collection
    }
    /// The chunk with this lower bound.
    pub(crate) fn chunk(&self, min: &RawDoc) -> Option<ChunkRef<'_>> {
        let start = self.entry().key.key_of_bound(min).ok()?;
        self.table.chunks.find(&start).filter(|chunk| chunk.start() == start)
    }
    /// The table when these chunks are written.
    pub(crate) fn after(&self, written: &[Chunk]) -> Result<RoutingTable> {
        self.table.advanced(self.entry().clone(), written)
    }
    /// What has to be written so that the chunks become those of `change`; `stored` finds the document of a chunk by its lower bound.
    pub(crate) fn changes(
        &self,
        change: pando_routing::commit::Change,
        new_id: impl Fn() -> pando_bson::ObjectId,
        stored: impl Fn(&RawDoc) -> Result<Option<DocBuf>>,
    ) -> Result<Vec<Change>> {
        let (ns, uuid) = (ns("chunks"), self.entry().uuid);
        let mut out = Vec::with_capacity(change.written.len() + change.removed.len());
        // What goes makes room for what comes.
        for min in &change.removed {
            let was = stored(min)?.ok_or_else(|| Error::internal("a chunk to remove is not there"))?;
            out.push(Change::Remove { ns: ns.clone(), was });
        }
        for chunk in change.written {
            out.push(match stored(&chunk.min)? {
                None => {
                    let now = Chunk { id: new_id(), ..chunk }.to_doc(uuid);
                    Change::Insert(ns.clone(), now)
                }
                Some(was) => {
                    let now = Chunk { id: Chunk::parse(&was)?.id, ..chunk }.to_doc(uuid);
                    Change::Replace { ns: ns.clone(), was, now }
                }
            });
        }
        Ok(out)
    }
}

pub(crate) fn text<'a>(doc: &'a RawDoc, field: &str) -> Result<&'a str> {
    doc.get(field).and_then(|v| v.as_str()).ok_or_else(|| {
        Error::new(ErrorCode::NoSuchKey, format!("a document of config without {field}: {doc}"))
    })
}

pub(crate) fn zones(shard: &RawDoc) -> Vec<&str> {
    let tags = shard.get("tags").and_then(|v| v.as_array()).unwrap_or(RawDoc::empty());
    tags.iter().filter_map(|e| e.value().as_str()).collect()
}

pub(crate) fn is_draining(shard: &RawDoc) -> bool {
    shard.get("draining").is_some_and(|v| v.is_truthy())
}

pub(crate) fn shard_of(chunk: &RawDoc) -> Option<ShardId> {
    chunk.get("shard").and_then(|v| v.as_str()).map(ShardId::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chunk_doc, stored};
    use pando_bson::ObjectId;
    use pando_routing::Placement;

    fn has_id(doc: &RawDoc, id: u8) -> bool {
        matches!(doc.get("_id"), Some(Value::ObjectId(it)) if it == ObjectId([id; 12]))
    }

    #[test]
    fn a_chunk_that_changes_keeps_its_id_and_one_that_is_new_gets_one() {
        let stored = stored(&[(Value::MinKey, "a"), (Value::Int32(0), "a")]);
        let (min, max) =
            (stored.table.chunks.iter().next().unwrap().min().to_buf(), stored.entry().key.greatest());
        let merged = pando_routing::commit::merge(&stored.table, &ShardId::new("a"), &min, &max).unwrap();
        let there = |min: &RawDoc| Ok(chunk_doc(&stored, min));
        let changes = stored.changes(merged, || ObjectId([99; 12]), there).unwrap();
        assert!(matches!(&changes[0], Change::Remove { was, .. } if has_id(was, 2)));
        assert!(matches!(&changes[1], Change::Replace { now, .. } if has_id(now, 1)));
        let points = [pando_bson::doc! { "a": -5 }.to_raw()];
        let first = stored.table.chunks.iter().next().unwrap();
        let split = pando_routing::commit::split(
            &stored.table,
            &ShardId::new("a"),
            first.min(),
            &first.max(),
            &points,
        )
        .unwrap();
        let after = stored.after(&split.written).unwrap();
        assert_eq!((after.chunks.len(), after.placement()), (3, Placement::new(1, 3)));
        let changes = stored.changes(split, || ObjectId([99; 12]), there).unwrap();
        assert!(matches!(&changes[1], Change::Insert(_, now) if has_id(now, 99)));
    }
}
