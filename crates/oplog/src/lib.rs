//! The replicated log's entries: how they look as bytes, and how an update is told as a difference.
//!
//! * [`entry`] — building and reading entries (R-OPLOG-2..5)
//! * [`diff`] — updates as `$v: 2` diffs (R-OPLOG-7)
//! * [`meta`] — what batching needs to know of an entry, and what may share a batch (R-APPLY-1, R-APPLY-2)
//! * [`fetch`] — what a batch from a sync source must be (R-FETCH-5..8)

pub mod diff;
pub mod entry;
pub mod fetch;
pub mod meta;
pub mod session;

pub use entry::{Entry, EntryView, Identity, OpType, Session};
pub use meta::Meta;
