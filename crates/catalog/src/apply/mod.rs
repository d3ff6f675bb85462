//! Entries of the log back into rows: at a start, from another member, and after a rollback.
//!
//! [`entry`] applies one, [`group`] the operations of a transaction, [`run`] a batch by several workers. [`recovery`] opens the
//! catalog and replays what the checkpoint does not hold; [`rollback`] opens it again at an earlier time.

pub(crate) mod applied;
pub(crate) mod entry;
pub(crate) mod group;
pub(crate) mod recovery;
pub(crate) mod rollback;
pub(crate) mod run;
