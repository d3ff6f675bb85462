//! A sharded collection for tests.

use crate::metadata::Stored;
use pando_base::{Timestamp, Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use pando_routing::{Chunk, CollectionEntry, Placement, RoutingTable, ShardId};

pub(crate) const GENERATION: (ObjectId, Timestamp) = (ObjectId([7; 12]), Timestamp::new(9, 1));

/// `d.c`, by `a`: chunks from these bounds on, each with its shard, since the time 10.
pub(crate) fn stored(chunks: &[(Value<'_>, &str)]) -> Stored {
    let uuid = Uuid([1; 16]);
    let bound = |v: Value<'_>| {
        let mut d = DocBuilder::new();
        d.value("a", v);
        d.finish()
    };
    let mut entry = DocBuilder::new();
    entry.str("_id", "d.c").object_id("lastmodEpoch", GENERATION.0).date("lastmod", 0);
    entry.timestamp("timestamp", GENERATION.1).uuid("uuid", &uuid.0);
    entry.doc("key", |key| {
        key.i32("a", 1);
    });
    let docs = chunks.iter().enumerate().map(|(i, (min, shard))| {
        let max = chunks.get(i + 1).map_or(Value::MaxKey, |next| next.0);
        let shard = ShardId::new(shard);
        let owner = pando_routing::chunk::Owner { valid_after: Timestamp::new(10, 1), shard: shard.clone() };
        let (placement, id) = (Placement::new(1, i as u32), ObjectId([i as u8 + 1; 12]));
        let (min, max) = (bound(*min), bound(max));
        Chunk { id, min, max, shard, placement, history: vec![owner], jumbo: false }.to_doc(uuid)
    });
    of_docs(entry.finish(), &docs.collect::<Vec<_>>())
}

/// From the documents that would be stored.
pub(crate) fn of_docs(doc: DocBuf, chunks: &[DocBuf]) -> Stored {
    let chunks: Vec<Chunk> = chunks.iter().map(|doc| Chunk::parse(doc).unwrap()).collect();
    let table = RoutingTable::new(CollectionEntry::parse(&doc).unwrap(), &chunks).unwrap();
    Stored { doc, table }
}

/// The documents of its chunks; each has the number of its place for an id.
pub(crate) fn chunk_docs(stored: &Stored) -> Vec<DocBuf> {
    let numbered = stored.table.chunks.iter().zip(1..);
    numbered
        .map(|(chunk, n)| Chunk { id: ObjectId([n; 12]), ..chunk.to_chunk() }.to_doc(stored.entry().uuid))
        .collect()
}

/// The document of the chunk with this lower bound.
pub(crate) fn chunk_doc(stored: &Stored, min: &RawDoc) -> Option<DocBuf> {
    chunk_docs(stored).into_iter().find(|doc| doc.get("min").and_then(|v| v.as_doc()) == Some(min))
}
