//! Cursors of clients, made of cursors on shards.
//!
//! ```text
//!   shard a: cursor ─┐                ┌──────► skip, limit ─► batches
//!   shard b: cursor ─┼─► Merge ─► stages of a pipeline ─┘
//!   shard c: cursor ─┘  (merge.rs)    (if it has a merging part)
//! ```

pub(crate) mod cursor;
pub(crate) mod merge;
mod post_image;
pub(crate) mod remote;
pub(crate) mod reply;
pub(crate) mod watching;

pub(crate) use cursor::{RouterCursor, Shape, Wakes, Wanted};
pub(crate) use remote::Remotes;
pub(crate) use reply::Open;
pub(crate) use watching::Watching;
