//! Databases, collections and indexes: the durable catalog, the one write path and what reads go through.
//!
//! ```text
//!   catalog.rs     the handle: what exists now, who may change it, units of work
//!   schema/        what exists, as data: collections, views, options, names, durable rows, the snapshot
//!   write/         the one write path (one WriteUnit): fix and validate a document, record, keys by pando_index,
//!                  index entries, observers → log entry, commit
//!   transaction/   a unit that stays open between statements; prepared ones
//!   read/          query::Source at a storage snapshot
//!   ddl/           create, collMod, rename, drops, indexes: rows of the catalog, then a new snapshot
//!   build/         index builds beside writers, here and where the log is followed
//!   apply/         entries of the log back into rows: recovery, replication, rollback
//!   copy/          another member's collections into an empty node
//!   import/        collections of another set, taken in by their files
//!   upkeep/        checks, figures, the sweeper
//!   lock/          locks of databases and collections
//! ```
//!
//! [`Catalog`] is the handle. Readers take [`Catalog::snapshot`] and a storage snapshot and lock nothing; writers
//! hold a [`WriteGuard`] so that definitions stand still; definition changes wait for writers (see [`lock`]).

mod apply;
mod build;
mod catalog;
mod copy;
mod ddl;
mod import;
pub mod lock;
mod read;
mod schema;
mod transaction;
mod upkeep;
mod write;

pub use build::entries as build_entries;
pub use schema::{names, options};
pub use write::observer;

pub use apply::applied::Applied;
pub use apply::entry::Applying;
pub use apply::run::{Spread, same_entry};
pub use build::jobs::BuildView;
pub use build::state::{Build, Phase, Progress};
pub use catalog::{Catalog, OpenOptions, is_a_view};
pub use copy::clone_load::CloneLoad;
pub use copy::refetch::{FetchedFile, MinValid};
pub use ddl::coll_mod::Modified;
pub use ddl::collections::Dropped;
pub use ddl::drop_database::DatabaseDrop;
pub use ddl::indexes::{DropWhich, IndexesCreated, IndexesDropped};
pub use ddl::permit::Permit;
pub use ddl::time_series::buckets_for;
pub use import::told::{IMPORT_MISSING, ImportOrder, Imported, ImportedCollection};
pub use lock::order::Resource;
pub use pando_index::{
    IndexSpec, Requested, full_collation, is_id_key, same_key, ttl_seconds, without_unknown_options,
};
pub use read::oplog_source::{OplogSource, rid_of as oplog_rid};
pub use read::source::{CollectionSource, find_by_id, find_id};
pub use schema::collection::{Collection, Index, IndexState, KeyFormat, Scans, Shared, Validator, View};
pub use schema::options::CollectionOptions;
pub use schema::sizes::{Sizes, Totals};
pub use schema::snapshot::{CatalogSnapshot, Named};
pub use schema::table::Table;
pub use schema::tables::TableSource;
pub use schema::views::ResolvedView;
pub use schema::write_guard::WriteGuard;
pub use transaction::history_iterator::TransactionHistory;
pub use transaction::open::Committed;
pub use transaction::prepared::{PreparedView, Share};
pub use transaction::prepared_table::About;
pub use transaction::session_records::SessionRecords;
pub use upkeep::db_hash::DbHash;
pub use upkeep::stats::CollectionStats;
pub use upkeep::validate::{Extent, Report as ValidateReport};
pub use write::array_marks::Marks;
pub use write::crud::{Inserts, UpdateForm, after_conflict, retry_conflicts};
pub use write::document::check_id;
pub use write::gate::WriteGate;
pub use write::interrupt::{Interrupt, Uninterrupted};
pub use write::op::{SessionRef, WriteOp};
pub use write::transaction_event::TxnId;
pub use write::unit::{UnitMark, WriteUnit};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
