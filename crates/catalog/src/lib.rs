//! Databases, collections and indexes: the durable catalog, the one write path and what reads go through.
//!
//! ```text
//!                    ┌ fix, validate          document.rs validation.rs
//!   write.rs ────────┤ record + index keys    index_entries.rs record_id.rs, keys by pando_index
//!   (one WriteUnit)  │ observers → log entry  observer.rs
//!                    └ commit                 unit.rs
//!   ddl.rs index_ddl.rs rename.rs coll_mod.rs   rows of the catalog (durable.rs), then a new snapshot (snapshot.rs)
//!   transaction.rs                            a unit that stays open between statements
//!   build.rs build_job.rs build_follow.rs     index builds beside writers, here and where the log is followed
//!   read.rs oplog_source.rs                   query::Source at a storage snapshot
//!   apply.rs recovery.rs                      entries of the log back into rows
//!   cloning.rs                                another member's collections into an empty node
//!   validate.rs db_hash.rs stats.rs ttl.rs    checks, figures, the sweeper
//! ```
//!
//! [`Catalog`] is the handle. Readers take [`Catalog::snapshot`] and a storage snapshot and lock nothing; writers
//! hold a [`WriteGuard`] so that definitions stand still; definition changes wait for writers (see [`lock`]).

mod apply;
mod apply_group;
mod apply_run;
mod build;
pub mod build_entries;
mod build_follow;
mod build_job;
mod build_run;
mod build_slots;
mod build_target;
mod capped;
mod capped_copy;
mod catalog;
mod clone_load;
mod cloning;
mod coll_mod;
mod coll_mod_args;
mod collection;
mod conflict;
mod create_args;
mod db_hash;
mod ddl;
mod document;
mod drop_database;
mod durable;
mod encrypted_fields;
mod gate;
mod history_iterator;
mod index_ddl;
mod index_entries;
mod kept_sessions;
pub mod lock;
mod lock_order;
pub mod names;
pub mod observer;
mod oid;
mod oplog_size;
mod oplog_source;
pub mod options;
mod past;
mod prepared;
mod read;
mod rebuild;
mod record_id;
mod recovery;
mod refetch;
mod rename;
mod rollback;
mod sizes;
mod snapshot;
mod sorter;
mod stats;
mod storage_engine;
mod tables;
mod time_series;
mod touched;
mod transaction;
mod ttl;
mod unit;
mod validate;
mod validation;
mod views;
mod write;

pub use apply::Applying;
pub use apply_run::{Applied, Spread, same_entry};
pub use build::{Build, Phase, Progress};
pub use build_job::BuildView;
pub use catalog::{Catalog, OpenOptions, WriteGuard, is_a_view};
pub use clone_load::CloneLoad;
pub use coll_mod::Modified;
pub use coll_mod_args::checked_fields as checked_coll_mod;
pub use collection::{Collection, Index, IndexState, KeyFormat, Scans, Shared, Validator, View};
pub use create_args::CreateArgs;
pub use db_hash::DbHash;
pub use ddl::Dropped;
pub use document::check_id;
pub use gate::WriteGate;
pub use history_iterator::TransactionHistory;
pub use index_ddl::{DropWhich, IndexesCreated, IndexesDropped};
pub use kept_sessions::KeptSessions;
pub use lock_order::Resource;
pub use oplog_source::{OplogSource, rid_of as oplog_rid};
pub use options::CollectionOptions;
pub use pando_index::{IndexSpec, Requested, full_collation, is_id_key, same_key, without_unknown_options};
pub use prepared::{About, PreparedView, Share, TxnId};
pub use read::{CollectionSource, find_by_id, find_id};
pub use refetch::{FetchedFile, MinValid};
pub use sizes::{Sizes, Totals};
pub use snapshot::{CatalogSnapshot, Named};
pub use stats::CollectionStats;
pub use tables::{Table, TableSource};
pub use time_series::buckets_for;
pub use transaction::Committed;
pub use unit::{Marks, SessionRef, UnitMark, WriteOp, WriteUnit};
pub use validate::{Extent, Report as ValidateReport};
pub use views::ResolvedView;
pub use write::{Inserts, Interrupt, Uninterrupted, UpdateForm, after_conflict, retry_conflicts};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
