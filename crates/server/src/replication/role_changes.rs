//! What a change of role, a rollback or a copy of another's data touches besides replication itself.

use super::Replication;
use crate::Config;
use crate::config_server::ConfigServer;
use crate::lifecycle::Lifecycle;
use crate::sessions::LogicalSessions;
use crate::settings::Settings;
use crate::sharding::Sharding;
use crate::tenants::Tenants;
use crate::upkeep::backups::Backups;
use crate::upkeep::index_builds::IndexBuildsCoordinator;
use pando_access::InternalCollections;
use pando_access::Maintenance;
use pando_command::Instance;
use pando_env::Env;
use pando_session::cursors::KillCursors;
use pando_storage::Storage;
use std::sync::Arc;

/// The parts of a server that feel it when its role changes. The coordinator orders, and this is who does it: its place in
/// the set at the start ([`RoleChanges::take_place`]), then every effect, rollback and copy.
pub(crate) struct RoleChanges {
    pub(crate) env: Env,
    pub(crate) config: Arc<Config>,
    pub(crate) instance: Arc<Instance>,
    pub(crate) storage: Storage,
    pub(crate) maintenance: Maintenance,
    pub(crate) internal: InternalCollections,
    pub(crate) lifecycle: Arc<Lifecycle>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) replication: Arc<Replication>,
    pub(crate) sessions: Arc<LogicalSessions>,
    pub(crate) cursors: Arc<dyn KillCursors>,
    pub(crate) index_builds: Arc<IndexBuildsCoordinator>,
    pub(crate) backups: Arc<Backups>,
    pub(crate) config_server: Option<Arc<ConfigServer>>,
    pub(crate) sharding: Option<Arc<Sharding>>,
    pub(crate) tenants: Option<Arc<Tenants>>,
}
