//! Who owns what, as data: versions, shard keys, chunks and zones, and from a query to the shards that can answer it.
//! Pure: no I/O, no clock.
//!
//! ```text
//!   config.databases ──► database.rs ─┐
//!   config.collections ► collection.rs├─► table.rs ──► target.rs   which shards a query or a document concerns (router)
//!   config.chunks ─────► chunk.rs ────┤   chunk_map.rs owned.rs    which documents a shard answers for (shard)
//!   config.tags ───────► zones.rs ────┘              └─ history.rs who owned a chunk at a time
//!
//!   cache.rs     keeps tables: joins those who ask, refreshes with what changed or as a whole, as events and actions
//!   version.rs   what a sender and a shard compare; check.rs judges, stale.rs tells the sender
//!   force_jumbo.rs  whether what is too large moves all the same
//!   initial.rs   the chunks that a collection begins with; commit.rs what a split, a merge or a move writes; split.rs what these may do
//! ```
//!
//! The config servers store the truth (SH-CAT-1 to SH-CAT-5); everybody else keeps copies, which may be old. Nothing here
//! finds out whether a copy is old: whoever uses one sends its version along, and the shard that owns the data compares
//! (SH-PROTO-1, SH-PROTO-2).

pub mod cache;
pub mod cached_documents;
pub mod changelog;
pub mod check;
pub mod chunk;
pub mod chunk_map;
pub mod collection;
pub mod commit;
pub mod database;
mod fields;
pub mod force_jumbo;
pub mod history;
pub mod initial;
pub mod key_range;
pub mod mutants;
pub mod owned;
mod presplit;
pub mod shard_id;
pub mod shard_key;
pub mod shard_set;
pub mod split;
pub mod stale;
pub mod table;
pub mod target;
#[cfg(test)]
mod testing;
pub mod version;
pub mod zones;

pub use chunk::Chunk;
pub use chunk_map::{ChunkMap, ChunkRef};
pub use collection::CollectionEntry;
pub use database::{DatabaseEntry, DatabaseVersion};
pub use force_jumbo::ForceJumbo;
pub use key_range::KeyRange;
pub use owned::Ownership;
pub use shard_id::ShardId;
pub use shard_key::ShardKey;
pub use shard_set::ShardSet;
pub use table::RoutingTable;
pub use version::{ChunkVersion, Generation, Placement};
