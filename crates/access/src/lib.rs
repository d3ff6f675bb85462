//! The way to collections: everything that an operation is asked before it may read or write stands here, and nothing in the
//! roles above finds a collection by another way.
//!
//! * [`internal_collections`] — documents that the server keeps for itself (its configuration, its votes, the sessions it knows, what
//!   workflows remember). They belong to this node or to its set whatever a cluster distributes, so no shard version, no
//!   view and no transaction has a say.
//!
//! The collections of users are still found by `server` itself; docs/design/2026-11-24-one-door.md says what is to come.

pub mod internal_collections;

pub use internal_collections::{InternalCollections, LogAs};
