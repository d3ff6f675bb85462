//! The one door to collections: everything that an operation is asked before it may read, write or define stands here, and nothing
//! in the roles above finds a collection by another way.
//!
//! ```text
//!   handler ─► Access::read ──► Reading: an Acquisition, a view, or nothing ─► sources, point reads
//!          ─► Access::write ─► WriteAcquisition ─► units of work, inserts
//!          ─► Access::create, drop_collection, … ─► the catalog changes its definitions
//!          ─► Access::definitions ─► what exists, for those who list and count; nothing of it can be read
//! ```
//!
//! * [`door`] — the checks, in one sequence, and where later ones go;
//! * [`reading`], [`writing`] — what an operation holds when the door has let it pass, and what it can do with that;
//! * [`define`] — creating, changing and dropping; [`definitions`] — what exists; [`inspect`] — looks at whole collections;
//! * [`by_uuid`], [`time_series`] — collections that are named by a UUID, or by the view that stands for their buckets;
//! * [`transaction`] — what is open of a multi-document transaction, and what it has met;
//! * [`placement`] — on a shard: whether the sender knows who owns what, and which documents are this shard's;
//! * [`beside`] — the collections that stages read beside their own;
//! * [`internal_collections`] — documents that the server keeps for itself (its configuration, its votes, the sessions it knows, what
//!   workflows remember). They belong to this node or to its set whatever a cluster distributes, so no shard version, no
//!   view and no transaction has a say;
//! * [`together`] — several of these changed together; reads by an index; `carried_out` — one of these with what another set's log says;
//! * [`maintenance`] — recovery, rollback, index builds, checkpoints: work on the data as a whole, which finds no collection
//!   for anybody.
//!
//! The catalog itself belongs to [`Access`]. Its types that handlers need to speak of collections stand in [`mod@types`].

mod access;
pub mod beside;
pub mod by_uuid;
mod carried_out;
pub mod define;
pub mod definitions;
pub mod door;
pub mod inspect;
pub mod internal_collections;
mod interrupt;
pub mod maintenance;
pub mod placement;

pub mod reading;
pub mod time_series;
pub mod together;
pub mod transaction;
pub mod types;
pub mod writing;

#[cfg(test)]
mod tests;

pub use access::Access;
pub use beside::Beside;
pub use definitions::Definitions;
pub use door::Missing;
pub use internal_collections::{InternalCollections, LogAs};
pub use interrupt::ByCtx;
pub use maintenance::{Deleted, IndexRange, Maintenance, MayChange, RangePlace, TenantExport};
pub use reading::{Acquisition, Below, CollectionScan, Reading};
pub use time_series::Series;
pub use together::Change;
pub use transaction::{OpenTxn, Statement, open_txn, statement};
pub use types::*;
pub use writing::WriteAcquisition;
