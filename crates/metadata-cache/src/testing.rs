//! Routes for tests, here and of whoever routes by them.

use crate::Route;
use pando_base::{Namespace, Timestamp, uuid::Uuid};
use pando_bson::{DocBuf, DocBuilder, ObjectId, extjson};
use pando_routing::{
    Chunk, CollectionEntry, DatabaseEntry, DatabaseVersion, Generation, Placement, RoutingTable, ShardId,
    ShardKey,
};
use std::sync::Arc;

pub fn doc(json: &str) -> DocBuf {
    let mut out = DocBuilder::new();
    out.document(&extjson::parse(json).expect(json));
    out.finish()
}

/// Chunks of `{k: 1}`: a shard, and from which `k` on it has it.
pub fn table(chunks: &[(&str, Option<i32>)]) -> Arc<RoutingTable> {
    let key = ShardKey::parse(&doc(r#"{"k": 1}"#)).expect("a key");
    let bound = |k: Option<i32>, end: &DocBuf| {
        k.map_or_else(
            || end.clone(),
            |k| {
                let mut d = DocBuilder::new();
                d.i32("k", k);
                d.finish()
            },
        )
    };
    let chunk = |i: usize| Chunk {
        id: ObjectId([i as u8; 12]),
        min: bound(chunks[i].1, &key.least()),
        max: bound(chunks.get(i + 1).and_then(|c| c.1), &key.greatest()),
        shard: ShardId::new(chunks[i].0),
        placement: Placement::new(1, i as u32),
        history: Vec::new(),
        jumbo: false,
    };
    let all: Vec<Chunk> = (0..chunks.len()).map(chunk).collect();
    let collection = CollectionEntry {
        ns: "d.c".to_owned(),
        generation: Generation { epoch: ObjectId([1; 12]), timestamp: Timestamp::new(1, 1) },
        uuid: Uuid([1; 16]),
        key: key.clone(),
        unique: false,
        default_collation: None,
        last_mod_ms: 0,
        max_chunk_bytes: None,
        no_balance: false,
        allow_migrations: true,
        timeseries: None,
        resharding: None,
    };
    Arc::new(RoutingTable::new(collection, &all).expect("chunks that tile"))
}

/// `d.c`, whose database is on shard `a`.
pub fn route(table: Option<Arc<RoutingTable>>) -> Route {
    let version = DatabaseVersion { uuid: Uuid([7; 16]), timestamp: Timestamp::new(1, 1), last_mod: 1 };
    let db = DatabaseEntry { name: "d".to_owned(), primary: ShardId::new("a"), version };
    Route::known(Namespace::unchecked("d", "c"), db, table)
}
