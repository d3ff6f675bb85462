//! `config.cache.*`: what a shard's primary knows of who owns what, as documents that its secondaries have from the log, in the
//! order of the data (SH-CAT-11, SH-CACHE-1, SH-CACHE-2, SYS-214).
//!
//! | collection | one document |
//! |---|---|
//! | `config.cache.databases` | a database: primary shard and version |
//! | `config.cache.collections` | a sharded collection; `refreshing` while its chunks are being written |
//! | `config.cache.chunks.<ns>` | a chunk, by its lower bound |

use crate::chunk::{Chunk, Owner};
use crate::chunk_map::ChunkRef;
use crate::collection::CollectionEntry;
use crate::fields::Fields;
use crate::shard_id::ShardId;
use crate::shard_key::ShardKey;
use crate::table::RoutingTable;
use crate::version::{Generation, Placement};
use pando_base::{Error, ErrorCode, Namespace, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::cmp::Ordering;

pub const DATABASES: &str = "config.cache.databases";
pub const COLLECTIONS: &str = "config.cache.collections";

/// Where a collection's chunks are.
pub fn chunks_of(ns: &str) -> Result<Namespace> {
    Namespace::new("config", &format!("cache.chunks.{ns}"))
}

/// A document of `config.cache.collections`.
pub struct CachedCollection {
    pub entry: CollectionEntry,
    /// Its chunks are being written.
    pub refreshing: bool,
    /// The newest placement when they were last written as a whole.
    pub placement: Placement,
}

impl CachedCollection {
    pub fn of(table: &RoutingTable, refreshing: bool) -> CachedCollection {
        CachedCollection { entry: table.collection.clone(), refreshing, placement: table.placement() }
    }
    pub fn parse(doc: &RawDoc) -> Result<CachedCollection> {
        let f = Fields { kind: "ShardCollectionType", doc };
        let owned = |d: Option<&RawDoc>| d.map(RawDoc::to_buf);
        let entry = CollectionEntry {
            ns: f.text("_id")?.to_owned(),
            generation: Generation { epoch: f.object_id("epoch")?, timestamp: f.timestamp("timestamp")? },
            uuid: f.uuid("uuid")?,
            key: ShardKey::parse(f.document("key")?)?,
            unique: f.flag("unique")?.unwrap_or(false),
            default_collation: owned(f.optional_document("defaultCollation")?),
            last_mod_ms: 0,
            max_chunk_bytes: None,
            no_balance: false,
            allow_migrations: f.flag("allowMigrations")?.unwrap_or(true),
            timeseries: owned(f.optional_document("timeseriesFields")?),
            resharding: owned(f.optional_document("reshardingFields")?),
        };
        let placement = match doc.get("lastRefreshedCollectionVersion") {
            Some(_) => Placement::from_timestamp(f.timestamp("lastRefreshedCollectionVersion")?),
            None => Placement::NONE,
        };
        Ok(CachedCollection { entry, refreshing: f.flag("refreshing")?.unwrap_or(false), placement })
    }
    pub fn to_doc(&self) -> DocBuf {
        let e = &self.entry;
        let mut d = DocBuilder::new();
        d.str("_id", &e.ns).object_id("epoch", e.generation.epoch);
        d.timestamp("timestamp", e.generation.timestamp).uuid("uuid", &e.uuid.0);
        d.raw_doc("key", e.key.pattern());
        let optional = [
            ("defaultCollation", &e.default_collation),
            ("timeseriesFields", &e.timeseries),
            ("reshardingFields", &e.resharding),
        ];
        for (name, fields) in optional {
            if let Some(fields) = fields {
                d.raw_doc(name, fields);
            }
        }
        d.bool("unique", e.unique);
        if !e.allow_migrations {
            d.bool("allowMigrations", false);
        }
        d.bool("refreshing", self.refreshing);
        if !self.refreshing {
            d.timestamp("lastRefreshedCollectionVersion", self.placement.timestamp());
        }
        d.finish()
    }
    /// All of it, with the documents of its chunks in any order.
    ///
    /// # Errors
    /// [`ErrorCode::ConflictingOperationInProgress`] when it was read in the middle of a refresh.
    pub fn into_table(self, chunks: &[DocBuf]) -> Result<RoutingTable> {
        if self.refreshing {
            let text = format!("what is kept of {} is just being refreshed", self.entry.ns);
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        let chunks: Result<Vec<Chunk>> = chunks.iter().map(|doc| parse_chunk(doc)).collect();
        RoutingTable::new(self.entry, &chunks?)
    }
}

/// A chunk as it is kept, by its lower bound.
fn chunk_doc(chunk: ChunkRef<'_>) -> DocBuf {
    let mut d = DocBuilder::new();
    d.raw_doc("_id", chunk.min()).raw_doc("max", &chunk.max()).str("shard", chunk.shard().as_str());
    d.timestamp("lastmod", chunk.placement().timestamp());
    d.array("history", |a| {
        let mut owner = |valid_after, shard: &ShardId| {
            a.doc(|d| {
                d.timestamp("validAfter", valid_after).str("shard", shard.as_str());
            });
        };
        if let Some(since) = chunk.since() {
            owner(since, chunk.shard());
        }
        chunk.former_owners().iter().for_each(|o| owner(o.valid_after, &o.shard));
    });
    d.finish()
}
fn parse_chunk(doc: &RawDoc) -> Result<Chunk> {
    let f = Fields { kind: "ShardChunkType", doc };
    let mut history = Vec::new();
    let owners = f.optional_array("history")?.unwrap_or(RawDoc::empty());
    for e in owners.iter().take(limits::CHUNK_OWNERS_MAX) {
        let one = Fields { kind: "ChunkHistory", doc: e.value().as_doc().unwrap_or(RawDoc::empty()) };
        let (valid_after, shard) = (one.timestamp("validAfter")?, ShardId::new(one.text("shard")?));
        history.push(Owner { valid_after, shard });
    }
    Ok(Chunk {
        id: pando_bson::ObjectId([0; 12]),
        min: f.document("_id")?.to_buf(),
        max: f.document("max")?.to_buf(),
        shard: ShardId::new(f.text("shard")?),
        placement: Placement::from_timestamp(f.timestamp("lastmod")?),
        history,
        jumbo: false,
    })
}

/// What makes the documents of one table those of another.
#[derive(Default, Debug)]
pub struct Changes {
    /// `{_id: …}` of those that go.
    pub gone: Vec<DocBuf>,
    /// Those that come, or take the place of one with their `_id`.
    pub put: Vec<DocBuf>,
}

impl Changes {
    /// Chunks of one generation with one placement are the same chunk. Of a table of another generation nothing stays: its bounds may
    /// have other fields.
    pub fn between(before: Option<&RoutingTable>, after: &RoutingTable) -> Changes {
        let mut out = Changes::default();
        let (same, other) = match before {
            Some(b) if b.collection.generation == after.collection.generation => (before, None),
            _ => (None, before),
        };
        out.gone.extend(other.into_iter().flat_map(|t| t.chunks.iter()).map(key));
        let mut old = same.into_iter().flat_map(|t| t.chunks.iter()).peekable();
        for new in after.chunks.iter() {
            while let Some(o) = old.next_if(|o| o.start() < new.start()) {
                out.gone.push(key(o));
            }
            let there = old.next_if(|o| o.start().cmp(new.start()) == Ordering::Equal);
            if there.is_none_or(|o| o.placement() != new.placement()) {
                out.put.push(chunk_doc(new));
            }
        }
        out.gone.extend(old.map(key));
        out
    }
}

fn key(chunk: ChunkRef<'_>) -> DocBuf {
    let mut d = DocBuilder::new();
    d.raw_doc("_id", chunk.min());
    d.finish()
}
