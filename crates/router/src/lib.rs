//! One pandos: a stateless node between clients and the shards of a cluster (SH-ROLE-1).
//!
//! ```text
//!   client ─► shell ─► pipeline ─► commands/* ──► metadata cache: where do the documents live?
//!                                     │              ▲ stale, said a shard
//!                                     ├─► remote ────┴──► shards, each told what this router thinks it knows
//!                                     ├─► write: which statement goes where, what came of each
//!                                     ├─► cursors: streams of several shards as one
//!                                     └─► aggregate: a shards' part and a merging part
//! ```
//!
//! What is decided is decided as data: [`write`]'s batches, [`cursors`]' merging, what an error of a shard means
//! ([`remote`]'s `stale`), which part of a pipeline runs where. The rest asks and tells.

mod aggregate;
mod commands;
mod concern_defaults;
mod config;
mod cursors;
mod following;
mod keeper;
mod node;
mod op;
mod principals;
mod query_ctx;
mod remote;
mod router;
mod session_rounds;
mod start;
mod transactions;
mod uptime;
mod write;

pub use config::{Config, ConfigDb, GIT_VERSION, VERSION};
pub use remote::Shards;
pub use router::Router;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
