//! What handlers say of collections: definitions, options, writes and their observers. Nothing of it finds a collection or reads one.

pub use pando_catalog::lock::{Counts, Guard, Holders, Lock};
pub use pando_catalog::names::{self, check_writable};
pub use pando_catalog::observer;
pub use pando_catalog::options::{self, Capped};
pub use pando_catalog::{
    Collection, CollectionOptions, CollectionStats, DropWhich, Dropped, Extent, ImportOrder, Imported,
    ImportedCollection, Index, IndexSpec, Interrupt, Named, OpenOptions, Phase, PreparedView, ResolvedView,
    Resource, SessionRecords, SessionRef, Table, TransactionHistory, Uninterrupted, UpdateForm, View,
    WriteOp, WriteUnit, build_entries, check_id, full_collation, is_a_view, same_key, ttl_seconds,
    without_unknown_options,
};
