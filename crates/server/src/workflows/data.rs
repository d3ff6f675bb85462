//! What workflows do with this server's data, be it for a command or for the host of a primary.

use pando_access::InternalCollections;
use pando_access::Maintenance;
use pando_access::Uninterrupted;
use pando_base::{Namespace, OpTime, Result};
use pando_repl::services::Guard;
use pando_workflows::{Level, LocalWrite, Query, Resource, Section};

pub(crate) struct WorkflowData {
    pub(crate) internal: InternalCollections,
    pub(crate) maintenance: Maintenance,
}

impl WorkflowData {
    pub(crate) async fn write(&self, write: &LocalWrite) -> Result<Option<OpTime>> {
        match write {
            LocalWrite::Put { ns, doc } => self.internal.put(&Uninterrupted, ns, doc).await.map(Some),
            LocalWrite::Remove { ns, id } => self.internal.remove(&Uninterrupted, ns, id).await,
            LocalWrite::AbortIndexBuilds { ns, why } => {
                self.maintenance.abort_builds(ns, why).await.map(|()| None)
            }
            LocalWrite::DropCollection { ns } => self.maintenance.drop_in_locked_database(ns).await,
            LocalWrite::DropDatabase { db } => self.maintenance.log_dropped_database(db).map(Some),
        }
    }
    pub(crate) fn read(&self, query: &Query) -> Vec<Namespace> {
        let Query::Collections { db } = query;
        self.maintenance.names_in_database(db)
    }
    pub(crate) async fn lock(&self, resource: &Resource, level: Level) -> Guard {
        let Resource::Database(db) = resource;
        Box::new(match level {
            Level::Shared => self.maintenance.share_database(db).await,
            Level::Exclusive => self.maintenance.lock_database(db).await,
        })
    }
    pub(crate) async fn enter(&self, section: &Section) -> Result<Guard> {
        let Section::DropPending { db } = section;
        Ok(Box::new(self.maintenance.begin_drop_database(db).await?))
    }
}
