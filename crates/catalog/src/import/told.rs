//! What is told of collections that were taken in, here and by entries of the log.

use crate::schema::sizes::Totals;
use pando_base::{ErrorCode, Namespace, Timestamp, Uuid};
use pando_oplog::entry::EntryView;

/// The log says that a collection was taken in, and its tables are not here. Never shown to clients.
pub const IMPORT_MISSING: ErrorCode = ErrorCode(-31809);

/// Under which name tables are taken in, and for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImportOrder {
    pub import: Uuid,
    /// The merge that it is a part of.
    pub migration: Uuid,
    /// A time of this set's log, before which everything lies that was to be forgotten when this was asked for.
    pub since: Timestamp,
}

/// What [`crate::Catalog::take_in`] has here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The rows are those of this time of their own set.
    pub at: Timestamp,
    pub collections: Vec<ImportedCollection>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedCollection {
    pub ns: Namespace,
    pub uuid: Uuid,
    pub documents: u64,
    pub bytes: u64,
}

/// How often everything that is named was forgotten at once. Held by whoever changes the names, or acts on them.
#[derive(Debug, Default)]
pub(crate) struct Imports(pub(super) pando_base::sync::Mutex<u64>);

/// What an entry says of documents and bytes.
pub(crate) fn totals_of(e: &EntryView<'_>) -> Totals {
    let number = |name| e.o.get(name).and_then(|v| v.as_i64()).unwrap_or(0);
    Totals { count: number("numRecords"), bytes: number("dataSize") }
}
