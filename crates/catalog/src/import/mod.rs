//! Collections of another set that are taken in by their files, and come into being by one entry of the log.
//!
//! ```text
//!   every member:  files staged ─► tables loaded, named here (`take_in`) ─► it may tell its primary so
//!   the primary:                                                  importCollection ─► row of the catalog, from the entry's time on
//!   a secondary:                                                  the same by the entry: what is named here has to be there
//!   every member:  tables stand behind the entry ─► names forgotten (`forget_import`)
//! ```
//! Nothing of the documents is in the log. So the names, which are local rows, must be there whenever the entry may be applied: by a
//! secondary, by a replay, and once more behind a rollback. A member that has them not (it came later, or copied the set's data anew)
//! gives up its data and copies the set's ([`IMPORT_MISSING`]); it never has an empty collection instead.

mod publish;
mod registry;
mod take_in;

use pando_base::{ErrorCode, Namespace, Timestamp, Uuid};
pub(crate) use publish::totals_of;
use registry::Registered;

/// The log says that a collection was taken in, and its tables are not here. Never shown to clients.
pub const IMPORT_MISSING: ErrorCode = ErrorCode(-31809);

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
pub(crate) struct Imports(pando_base::sync::Mutex<u64>);
