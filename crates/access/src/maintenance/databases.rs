//! Whole databases: their locks, and the local steps of workflows that hold these.

use super::Maintenance;
use pando_base::{Namespace, OpTime, Result};
use pando_catalog::DatabaseDrop;
use pando_catalog::lock::{Counts, Guard, Holders};

impl Maintenance {
    /// Serializes definition changes of a database.
    pub async fn lock_database(&self, db: &str) -> Guard {
        self.catalog.lock_database(db).await
    }
    /// Returns when everybody is out who came in to write to a collection before, transactions included; of a whole database where the
    /// name has no collection, when nobody defines anything there who did before.
    pub async fn await_writers(&self, ns: &Namespace) {
        self.catalog.await_writers(ns).await
    }
    /// Keeps definition changes of a database away, and nobody else who does the same.
    pub async fn share_database(&self, db: &str) -> Guard {
        self.catalog.share_database(db).await
    }
    /// Locks of databases and collections that somebody holds or waits for, with their names.
    pub fn locks_in_use(&self) -> Vec<(String, Holders)> {
        self.catalog.locks_in_use()
    }
    /// How often the locks of databases and of collections were taken since the start.
    pub fn lock_counts(&self) -> (Counts, Counts) {
        self.catalog.lock_counts()
    }
    /// The collections of a database, views left out.
    /// All that are there.
    pub fn databases(&self) -> Vec<String> {
        self.catalog.snapshot().databases()
    }
    pub fn names_in_database(&self, db: &str) -> Vec<Namespace> {
        self.catalog.names_in_database(db)
    }
    /// Only one at a time for each database.
    pub async fn begin_drop_database(&self, db: &str) -> Result<DatabaseDrop> {
        self.catalog.begin_drop_database(db).await
    }
    /// Drops a collection whose database the caller has locked; `None` where it is gone.
    pub async fn drop_in_locked_database(&self, ns: &Namespace) -> Result<Option<OpTime>> {
        self.catalog.drop_in_locked_database(ns).await
    }
    /// The entry of a database that is gone. The caller has locked it.
    pub fn log_dropped_database(&self, db: &str) -> Result<OpTime> {
        self.catalog.log_dropped_database(db)
    }
    /// Drops collections marked `temp`, as a start does.
    pub async fn drop_temp_collections(&self) -> Result<usize> {
        self.catalog.drop_temp_collections().await
    }
}
