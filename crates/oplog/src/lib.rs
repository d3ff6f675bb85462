//! The replicated log's entries: how they look as bytes, and how an update is told as a difference.
//!
//! * [`entry`] — building and reading entries (R-OPLOG-2..5)
//! * [`diff`] — updates as `$v: 2` diffs (R-OPLOG-7)

pub mod diff;
pub mod entry;

pub use entry::{Entry, EntryView, Identity, OpType, Session};
