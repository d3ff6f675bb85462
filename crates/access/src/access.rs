//! The handle that a server holds.

use crate::{Definitions, InternalCollections, Maintenance};
use pando_base::{Error, ErrorCode, Result};
use pando_catalog::{Catalog, Collection, CollectionStats, OpenOptions};
use pando_env::Env;
use pando_shard::FilteringMetadata;
use pando_storage::Storage;
use std::fmt;
use std::sync::Arc;

/// All collections of one node, behind the door. Cheap to clone.
#[derive(Clone)]
pub struct Access {
    pub(crate) catalog: Catalog,
    /// On a shard: what it knows of who owns what.
    pub(crate) placement: Option<Arc<FilteringMetadata>>,
    /// `false` while the log is being cut or has not been taken up yet.
    oplog_is_readable: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access")
    }
}

impl Access {
    /// Opens the catalog that `storage` holds and brings it up to the end of the log.
    pub fn open(
        env: Env,
        storage: Storage,
        options: OpenOptions,
        oplog_is_readable: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Access> {
        let catalog = Catalog::open(env, storage, options)?;
        Ok(Access { catalog, placement: None, oplog_is_readable: Arc::new(oplog_is_readable) })
    }
    /// What the server keeps for itself.
    pub fn internal_collections(&self) -> InternalCollections {
        InternalCollections::new(self.catalog.clone())
    }
    /// Work on the data as a whole.
    pub fn maintenance(&self) -> Maintenance {
        Maintenance::new(self.catalog.clone())
    }
    /// What exists now. Take it once per operation.
    pub fn definitions(&self) -> Definitions {
        Definitions::new(self.catalog.snapshot())
    }
    /// Counts and sizes of a collection.
    pub fn stats_of(&self, coll: &Collection) -> Result<CollectionStats> {
        self.catalog.stats_of(coll)
    }
    /// `local` is open to reads at any time, but the log is not while it is being cut (13436).
    pub fn check_oplog_readable(&self, coll: &Collection) -> Result<()> {
        if coll.is_oplog() && !(self.oplog_is_readable)() {
            return Err(Error::new(
                ErrorCode::NotPrimaryOrSecondary,
                "Oplog collection reads are not allowed while in the rollback or startup state.",
            ));
        }
        Ok(())
    }
}
