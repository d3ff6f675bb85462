//! A sharded collection for tests.

use crate::metadata::Stored;
use pando_base::{Timestamp, Uuid};
use pando_bson::{DocBuilder, ObjectId, Value};
use pando_routing::{Chunk, Placement, ShardId};

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
    Stored::new(entry.finish(), docs.collect()).unwrap()
}
