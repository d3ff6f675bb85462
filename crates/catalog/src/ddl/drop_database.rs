//! Dropping a database, in two halves with a wait between them (R-DROP-2).
//!
//! ```text
//!   begin ─► every collection dropped ─► (the caller waits for a majority) ─► dropDatabase entry
//!     └ from here to the end nothing can be created in the database: 215
//! ```
//! Here are the parts; in which order a server takes them is decided by the workflow of `pando_workflows::drop_database`.
//!
//! The rows themselves stay until no rollback can reach the drops any more: storage removes them at a checkpoint whose
//! stable and oldest timestamps have passed the drop.

use crate::Catalog;
use crate::schema::names;
use crate::write::observer::Defined;
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result};

/// A drop under way. Given up before [`DatabaseDrop::finish`], it leaves an empty database that can be used again.
pub struct DatabaseDrop {
    catalog: Catalog,
    db: String,
}

impl Drop for DatabaseDrop {
    fn drop(&mut self) {
        self.catalog.0.dropping.lock().remove(&self.db);
    }
}

impl Catalog {
    /// Only one at a time for each database.
    pub async fn begin_drop_database(&self, db: &str) -> Result<DatabaseDrop> {
        names::check_database_droppable(db, self.exposes_oplog())?;
        let _db = self.lock_database(db).await;
        if !self.0.dropping.lock().insert(db.to_owned()) {
            return Err(Error::new(
                ErrorCode::DatabaseDropPending,
                format!("The database is currently being dropped. Database: {db}"),
            ));
        }
        Ok(DatabaseDrop { catalog: self.clone(), db: db.to_owned() })
    }

    /// Error while `ns`'s database is on its way out. The database's lock must be held.
    pub(crate) fn check_not_dropping(&self, ns: &Namespace) -> Result<()> {
        if self.0.dropping.lock().contains(ns.db()) {
            return Err(Error::new(
                ErrorCode::DatabaseDropPending,
                format!("Cannot create collection {ns} - database is in the process of being dropped."),
            ));
        }
        Ok(())
    }

    /// Both halves without a wait.
    pub async fn drop_database(&self, db: &str) -> Result<OpTime> {
        let dropping = self.begin_drop_database(db).await?;
        if dropping.collections().await?.0 == 0 {
            return Ok(OpTime::NULL);
        }
        dropping.finish().await
    }

    /// The collections of a database, views left out.
    pub fn names_in_database(&self, db: &str) -> Vec<Namespace> {
        self.snapshot().collections(db).iter().map(|c| c.ns.clone()).collect()
    }
    /// Drops a collection whose database the caller has locked; `None` where it is gone.
    pub async fn drop_in_locked_database(&self, ns: &Namespace) -> Result<Option<OpTime>> {
        let Some(guard) = self.ddl_lock(ns).await else { return Ok(None) };
        let mut unit = self.begin_unit(guard.coll.replicated)?;
        self.remove_collection(&mut unit, &guard.coll)?;
        let at = unit.commit()?;
        self.forget(&guard.coll, at.ts);
        Ok(Some(at))
    }
    /// The entry of a database that is gone. The caller has locked it.
    pub fn log_dropped_database(&self, db: &str) -> Result<OpTime> {
        let mut unit = self.begin_unit(db != "local")?;
        unit.stamp();
        unit.observe(&Defined::DatabaseDropped { db })?;
        unit.commit()
    }
}

impl DatabaseDrop {
    /// The first half, views last: how many collections there were, and the last entry.
    pub async fn collections(&self) -> Result<(usize, OpTime)> {
        let catalog = &self.catalog;
        let _db = catalog.lock_database(&self.db).await;
        let mut names = catalog.names_in_database(&self.db);
        let (mut dropped, mut newest) = (0, OpTime::NULL);
        names.sort_by_key(|ns| ns.coll() == names::SYSTEM_VIEWS);
        for ns in names {
            catalog.abort_builds(&ns, "dropDatabase command").await?;
            if let Some(at) = catalog.drop_in_locked_database(&ns).await? {
                (dropped, newest) = (dropped + 1, at);
            }
        }
        Ok((dropped, newest))
    }
    /// The second half: the database's own entry.
    pub async fn finish(self) -> Result<OpTime> {
        let _db = self.catalog.lock_database(&self.db).await;
        self.catalog.log_dropped_database(&self.db)
    }
}
