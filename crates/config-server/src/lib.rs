//! The config servers' catalog manager: the only one who changes what a cluster knows of itself (SYS-252, SH-CAT-1 to SH-CAT-9).
//!
//! ```text
//!   command ─► CatalogManager ── lock ──► mutexes.rs: topology, zones, one for each database and each collection
//!                    │
//!                    ├─ read ───► metadata.rs: config.shards, databases, collections, chunks, tags, as documents and as types
//!                    ├─ decide ─► pando_routing (chunks, zones), the pure parts of shards.rs, databases.rs, …
//!                    └─ write ──► InternalCollections::write_together: all of it or nothing, one entry of the log
//!                                 and what happened into config.changelog (changelog.rs)
//! ```
//!
//! * **Read, decide, write under one mutex.** Two operations that concern the same thing come one after the other, so each decides upon
//!   what the other has left. The write names the documents that were read: had anybody else changed one, nothing is written (117).
//! * **An answer is true for good.** Whoever serves the command waits until a majority holds the last write that the answer may rest on,
//!   also where nothing had to be written ([`CatalogManager`] reads what is there, not what is committed).
//! * **What was done already is no mistake.** A command may come twice, since its sender may not have heard the answer.
//!
//! What the crate needs of its process is [`Node`]: other hosts, a majority, the table of sessions.

mod balancer_round;
mod balancing;
mod changelog;
mod chunks;
mod cluster_parameters;
mod collections;
mod config_shard;
mod databases;
mod defragmentation;
mod documents;
mod jumbo;
mod kept_tables;
mod manager;
mod members;
mod merge_all_chunks;
mod metadata;
mod migrations;
mod move_range;
mod mutexes;
mod node;
mod prepare;
mod refine_shard_key;
mod remove_shard;
mod rename_collection;
mod shard_checks;
mod shards;
#[cfg(test)]
mod testing;
mod user_writes;
mod zones;

pub use balancer_round::{AllMeasured, Balanced, Defragmentation, Move, Plan, Sizes, Unmeasured};
pub use balancing::{Balancing, Compliance};
pub use chunks::{Merge, Split};
pub use config_shard::{CONFIG_SHARD, ClearOut};
pub use manager::CatalogManager;
pub use merge_all_chunks::Merged;
pub use metadata::{Metadata, ns};
pub use migrations::Migration;
pub use move_range::OwnedRange;
pub use node::Node;
pub use pando_balancer::{Phase, Settings, Why};
pub use refine_shard_key::Refinement;
pub use remove_shard::Draining;
pub use rename_collection::Rename;
pub use shard_checks::{ConnectionString, NewShard};
