//! Index builds on collections that hold documents, beside writers, on every member at once.
//!
//! ```text
//!   primary:   startIndexBuild ─► scan, load, drain ─► votes ─────────────► alone: drain the rest, commitIndexBuild
//!                    │                                  ▲ enough of them          │
//!                    ▼ (log)                            │                         ▼ (log)
//!   others:    register ───────► scan, load, drain ─► vote                   drain the rest, ready
//! ```
//! 1. Register (alone with the collection for a moment, or between two entries of the log): the index exists but is not
//!    ready. From now on writers leave every change of its keys in a side table, in their own units.
//! 2. Scan the collection as it was at some moment since, sort the keys, load them in bulk.
//! 3. Apply the side table to the index, again and again. With nothing left the member has its part ready.
//! 4. The primary is told that its commit quorum is met, and is alone again: it applies the rest, looks once more at what
//!    seemed to be duplicates, makes the index ready and says so in the log. Where that entry is applied the same is done.
//!
//! Steps 2 to 4 run in a task of their own ([`crate::build::job`], [`crate::build::run`]), so that neither a client that goes
//! away nor a change of role takes the build with it: a primary that steps down goes on as one of the others, and whoever
//! is elected commits. What the log says of builds is in [`crate::build::follow`].
//!
//! Rows of an unfinished index are in no log; nobody reads them, and after a crash or a rollback the build starts over. They carry
//! the timestamp that was visible when they were written, below that of the entry that makes the index ready.

pub mod entries;
pub(crate) mod follow;
pub(crate) mod in_place;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod rebuild;
pub(crate) mod rebuilds;
pub(crate) mod run;
pub(crate) mod slots;
pub(crate) mod sorter;
pub(crate) mod state;
pub(crate) mod target;
