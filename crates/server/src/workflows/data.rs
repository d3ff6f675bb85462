//! What workflows do with this server's data, be it for a command or for the host of a primary.

use crate::config_server::ConfigServer;
use crate::sharding::{Sharding, sections};
use pando_access::InternalCollections;
use pando_access::Maintenance;
use pando_access::Uninterrupted;
use pando_base::{Error, Namespace, OpTime, Result};
use pando_env::Env;
use pando_repl::services::Guard;
use pando_workflows::{Level, LocalWrite, Query, Resource, Section};
use std::sync::Arc;

pub(crate) struct WorkflowData {
    pub(crate) env: Env,
    pub(crate) internal: InternalCollections,
    pub(crate) maintenance: Maintenance,
    pub(crate) sharding: Option<Arc<Sharding>>,
    pub(crate) config_server: Option<Arc<ConfigServer>>,
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
            LocalWrite::EnterSection { ns, reason, block_reads } => {
                sections::enter(&self.internal, &self.maintenance, ns, reason, *block_reads).await
            }
            LocalWrite::LeaveSection { ns, reason } => sections::leave(&self.internal, ns, reason).await,
        }
    }
    pub(crate) fn read(&self, query: &Query) -> Vec<Namespace> {
        let Query::Collections { db } = query;
        self.maintenance.names_in_database(db)
    }
    pub(crate) async fn lock(&self, resource: &Resource, level: Level) -> Result<Guard> {
        let locks = || {
            let none = || Error::internal("a definition of a cluster on a node that is no shard");
            self.sharding.as_ref().map(|sharding| &sharding.ddl_locks).ok_or_else(none)
        };
        Ok(Box::new(match (resource, level) {
            (Resource::Membership, _) => {
                let none = || Error::internal("shards are told something by a node that is no config server");
                let config_server = self.config_server.as_ref().ok_or_else(none)?;
                config_server.manager.lock_membership(&Uninterrupted).await?
            }
            (Resource::Database(db), Level::Shared) => self.maintenance.share_database(db).await,
            (Resource::Database(db), Level::Exclusive) => self.maintenance.lock_database(db).await,
            (Resource::Definition(name), Level::Shared) => locks()?.shared(&self.env, name).await,
            (Resource::Definition(name), Level::Exclusive) => locks()?.exclusive(&self.env, name).await,
        }))
    }
    pub(crate) async fn enter(&self, section: &Section) -> Result<Guard> {
        let Section::DropPending { db } = section;
        Ok(Box::new(self.maintenance.begin_drop_database(db).await?))
    }
}
