//! The handle that commands hold.

use crate::Config;
use crate::cursors::body::CursorBody;
use crate::cursors::spill::Spills;
use crate::lifecycle::Lifecycle;
use crate::replication::Replication;
use crate::settings::Settings;
use crate::statistics::Statistics;
use crate::upkeep::backups::Backups;
use crate::upkeep::flow_control::Tickets;
use crate::upkeep::fsync_lock::FsyncLock;
use crate::upkeep::ttl::TtlStats;
use pando_access::{Access, InternalCollections, Maintenance};
use pando_base::Result;
use pando_command::{Instance, OpCtx, Registry};
use pando_env::Env;
use pando_session::retryable::Retryable;
use pando_session::{Cursors, Sessions};
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
    pub cursors: Cursors<CursorBody>,
    pub sessions: Sessions,
    pub(crate) session_rounds: crate::sessions::refresh::Rounds,
    pub retryable: Arc<Retryable>,
    pub(crate) sessions_known: crate::sessions::kept::Known,
    pub(crate) session_rows: crate::sessions::kept::Rows,
    pub(crate) sessions_waiting: crate::sessions::kept::Waiting,
    pub(crate) settings: Arc<Settings>,
    pub(crate) statistics: Statistics,
    pub lifecycle: Arc<Lifecycle>,
    pub(crate) open_buckets: crate::timeseries::OpenBuckets,
    pub(crate) index_builds: crate::upkeep::index_builds::Inbox,
    pub(crate) fsync_lock: FsyncLock,
    pub(crate) tickets: Tickets,
    pub(crate) ttl: TtlStats,
    pub(crate) backups: Backups,
    pub(crate) spills: Arc<Spills>,
}

impl Server {
    /// What connections are served with.
    pub fn service(self: &Arc<Self>) -> pando_shell::Service<Server> {
        pando_shell::Service::new(self.clone(), |server| &server.registry)
    }
    /// `host:port` as statistics name this server.
    pub fn host_port(&self) -> String {
        format!("{}:{}", self.config.host.facts().hostname, self.config.port)
    }

    /// `fsync`: the log is synced and the tables stand at it.
    pub(crate) async fn checkpoint_now(&self, ctx: &OpCtx) -> Result<()> {
        let log = self.storage.log();
        ctx.interruptible(log.wait_durable(log.visible())).await??;
        self.checkpoint().await.map(drop)
    }
}
