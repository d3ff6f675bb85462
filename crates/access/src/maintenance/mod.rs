//! Work on the data as a whole: starts, rollback, copies, checkpoints, index builds, prepared transactions, locks. None of it finds a
//! collection for an operation, so none of it passes the door.

mod builds;
mod databases;
mod imports;
mod ranges;
mod recovery;
mod repair;
mod rollback_files;
mod sessions;
pub(crate) mod tenants;
mod transactions;
mod upkeep;

pub use ranges::{Deleted, IndexRange, MayChange, RangePlace};
pub use tenants::TenantExport;

use pando_catalog::Catalog;
use std::fmt;

/// The catalog without its finders. Cheap to clone.
#[derive(Clone)]
pub struct Maintenance {
    catalog: Catalog,
}

impl fmt::Debug for Maintenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Maintenance")
    }
}

impl Maintenance {
    pub(crate) fn new(catalog: Catalog) -> Maintenance {
        Maintenance { catalog }
    }
    /// The catalog itself, for the data path of a secondary, which applies what the primary did and asks no door. It is handed on,
    /// not used (`cargo xtask tidy` sees to that).
    pub fn catalog_of_data_path(&self) -> Catalog {
        self.catalog.clone()
    }
}
