//! What workflows do with this server's data, be it for a command or for the host of a primary.

use pando_access::InternalCollections;
use pando_base::{Namespace, OpTime, Result};
use pando_catalog::Catalog;
use pando_catalog::Uninterrupted;
use pando_repl::services::Guard;
use pando_workflows::{Level, LocalWrite, Query, Resource, Section};

pub(crate) struct WorkflowData {
    pub(crate) internal: InternalCollections,
    pub(crate) catalog: Catalog,
}

impl WorkflowData {
    pub(crate) async fn write(&self, write: &LocalWrite) -> Result<Option<OpTime>> {
        match write {
            LocalWrite::Put { ns, doc } => self.internal.put(&Uninterrupted, ns, doc).await.map(Some),
            LocalWrite::Remove { ns, id } => self.internal.remove(&Uninterrupted, ns, id).await,
            LocalWrite::AbortIndexBuilds { ns, why } => {
                self.catalog.abort_builds(ns, why).await.map(|()| None)
            }
            LocalWrite::DropCollection { ns } => self.catalog.drop_in_locked_database(ns).await,
            LocalWrite::DropDatabase { db } => self.catalog.log_dropped_database(db).map(Some),
        }
    }
    pub(crate) fn read(&self, query: &Query) -> Vec<Namespace> {
        let Query::Collections { db } = query;
        self.catalog.names_in_database(db)
    }
    pub(crate) async fn lock(&self, resource: &Resource, level: Level) -> Guard {
        let Resource::Database(db) = resource;
        Box::new(match level {
            Level::Shared => self.catalog.share_database(db).await,
            Level::Exclusive => self.catalog.lock_database(db).await,
        })
    }
    pub(crate) async fn enter(&self, section: &Section) -> Result<Guard> {
        let Section::DropPending { db } = section;
        Ok(Box::new(self.catalog.begin_drop_database(db).await?))
    }
}
