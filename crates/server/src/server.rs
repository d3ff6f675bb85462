//! The handle that commands hold.

use crate::Config;
use crate::crud::Crud;
use crate::lifecycle::Lifecycle;
use crate::replication::Replication;
use crate::replication::role_changes::RoleChanges;
use crate::sessions::LogicalSessions;
use crate::settings::Settings;
use crate::statistics::Statistics;
use crate::upkeep::Upkeep;
use crate::upkeep::repair::Repair;
use pando_access::{Access, InternalCollections, Maintenance};
use pando_command::{Instance, Registry};
use pando_env::Env;
use pando_storage::Storage;
use std::sync::Arc;

/// One server process.
pub struct Server {
    pub env: Env,
    pub config: Arc<Config>,
    pub instance: Arc<Instance>,
    pub registry: Registry<Server>,
    pub storage: Storage,
    /// The one door to collections.
    pub access: Access,
    /// Work on the data as a whole.
    pub maintenance: Maintenance,
    /// What the server keeps for itself.
    pub(crate) internal: InternalCollections,
    pub replication: Arc<Replication>,
    pub(crate) role_changes: Arc<RoleChanges>,
    /// Reads and writes of documents.
    pub(crate) crud: Crud,
    pub sessions: Arc<LogicalSessions>,
    pub(crate) upkeep: Upkeep,
    pub(crate) settings: Arc<Settings>,
    pub(crate) statistics: Statistics,
    pub lifecycle: Arc<Lifecycle>,
}

impl Server {
    /// `--repair`: returns what is wrong and could not be mended.
    pub async fn check_all(&self) -> Vec<String> {
        let Server { env, storage, maintenance, replication, .. } = self;
        Repair { env, storage, maintenance, replication }.check_all().await
    }
    /// What connections are served with.
    pub fn service(self: &Arc<Self>) -> pando_shell::Service<Server> {
        pando_shell::Service::new(self.clone(), |server| &server.registry)
    }
}
