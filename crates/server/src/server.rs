//! The handle that commands hold.

use crate::Config;
use crate::config_server::ConfigServer;
use crate::crud::Crud;
use crate::lifecycle::Lifecycle;
use crate::principals::Principals;
use crate::replication::Replication;
use crate::sessions::LogicalSessions;
use crate::settings::Settings;
use crate::sharding::Sharding;
use crate::statistics::Statistics;
use crate::tenants::Tenants;
use crate::upkeep::Upkeep;
use crate::upkeep::repair::Repair;
use pando_access::Access;
use pando_base::{Error, Result, Uuid};
use pando_command::{Instance, OpCtx, Registry};
use pando_logins::Logins;
use pando_storage::Storage;
use pando_tenants::AccessBlockers;
use std::sync::Arc;

/// One server process: its parts. What they do, they do without it.
pub struct Server {
    pub config: Arc<Config>,
    pub instance: Arc<Instance>,
    pub registry: Registry<Server>,
    pub storage: Storage,
    /// The one door to collections.
    pub access: Access,
    /// Reads and writes of documents.
    pub(crate) crud: Crud,
    pub replication: Arc<Replication>,
    pub sessions: Arc<LogicalSessions>,
    pub(crate) upkeep: Upkeep,
    pub(crate) settings: Arc<Settings>,
    pub(crate) principals: Principals,
    pub(crate) logins: Logins,
    /// Where this process is one.
    pub(crate) config_server: Option<Arc<ConfigServer>>,
    pub(crate) statistics: Statistics,
    /// Where this is a shard, or may become one.
    pub(crate) sharding: Option<Arc<Sharding>>,
    /// Where this was started with `--serverless`.
    pub(crate) tenants: Option<Arc<Tenants>>,
    pub lifecycle: Arc<Lifecycle>,
}

impl Server {
    /// `--repair`: returns what is wrong and could not be mended.
    pub async fn check_all(&self) -> Vec<String> {
        let Server { instance, storage, upkeep, replication, .. } = self;
        Repair { env: &instance.env, storage, maintenance: &upkeep.maintenance, replication }
            .check_all()
            .await
    }
    /// Of one write of several, the others of which were done: what its error is once nobody has to wait for it any more.
    pub(crate) async fn settled(&self, ctx: &OpCtx, error: Error) -> Result<Error> {
        match &self.tenants {
            Some(tenants) => tenants.settled(ctx, error).await,
            None => Ok(error),
        }
    }
    /// Who may do what with which tenant, for those who look inside.
    pub fn blockers(&self) -> Option<&AccessBlockers> {
        self.tenants.as_ref().map(|tenants| &tenants.blockers)
    }
    /// Whether files of another set are being taken in here, for those who look inside.
    pub fn is_taking_in(&self) -> bool {
        self.tenants.as_ref().is_some_and(|tenants| tenants.taking.is_busy())
    }
    /// Under which names tables of another set were taken in here and are remembered, for those who look inside.
    pub fn imports(&self) -> Result<Vec<Uuid>> {
        self.upkeep.maintenance.imports()
    }
    /// The databases that there are here, for those who look inside.
    pub fn databases(&self) -> Vec<String> {
        self.upkeep.maintenance.databases()
    }
    /// What connections are served with.
    pub fn service(self: &Arc<Self>) -> pando_shell::Service<Server> {
        pando_shell::Service::new(self.clone(), |server| &server.registry)
    }
}
