//! The handle that commands hold.

use crate::Config;
use crate::cursors::body::CursorBody;
use crate::cursors::spill::Spills;
use crate::lifecycle::Lifecycle;
use crate::replication::rollback::Rollbacks;
use crate::replication::services::Services;
use crate::replication::transitions::{CatchUps, Transitions};
use crate::settings::Settings;
use crate::statistics::Statistics;
use crate::upkeep::backups::Backups;
use crate::upkeep::flow_control::Tickets;
use crate::upkeep::fsync_lock::FsyncLock;
use crate::upkeep::ttl::TtlStats;
use pando_access::InternalCollections;
use pando_base::Result;
use pando_catalog::Catalog;
use pando_command::{Instance, OpCtx, Registry};
use pando_env::Env;
use pando_env::sync::Notify;
use pando_repl::data::initial_sync::InitialSync;
use pando_repl::data::{DataPath, Progress};
use pando_repl::{Coordinator, Repl};
use pando_session::retryable::Retryable;
use pando_session::{Cursors, Sessions};
use pando_storage::Storage;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

/// One server process.
pub struct Server {
    pub env: Env,
    pub config: Config,
    pub instance: Arc<Instance>,
    pub registry: Registry<Server>,
    pub storage: Storage,
    pub catalog: Catalog,
    /// What the server keeps for itself.
    pub(crate) internal: InternalCollections,
    pub repl: Arc<Repl>,
    /// None on a standalone node.
    pub(crate) coordinator: OnceLock<Arc<Coordinator>>,
    pub(crate) services: OnceLock<Services>,
    /// A new primary has finished what it owes to earlier ones.
    pub(crate) stepped_up: Notify,
    /// How far this node is, with terms; how far others say they are.
    pub progress: Arc<Progress>,
    pub(crate) data_path: Mutex<Option<Arc<DataPath>>>,
    /// Connections of the data path.
    pub(crate) data_pool: pando_rpc::Pool,
    /// Connections for commands to other nodes; they hand on the cluster time.
    pub(crate) peers: pando_rpc::Pool,
    pub(crate) initial_sync: Mutex<Option<InitialSync>>,
    pub cursors: Cursors<CursorBody>,
    pub sessions: Sessions,
    pub(crate) session_rounds: crate::sessions::refresh::Rounds,
    pub retryable: Arc<Retryable>,
    pub(crate) sessions_known: crate::sessions::kept::Known,
    pub(crate) session_rows: crate::sessions::kept::Rows,
    pub(crate) sessions_waiting: crate::sessions::kept::Waiting,
    pub(crate) cluster_time_keys: crate::sessions::cluster_time_keys::ClusterTimeKeys,
    pub(crate) settings: Arc<Settings>,
    pub(crate) statistics: Statistics,
    pub lifecycle: Arc<Lifecycle>,
    pub(crate) open_buckets: crate::timeseries::OpenBuckets,
    pub(crate) index_builds: crate::upkeep::index_builds::Inbox,
    pub(crate) fsync_lock: FsyncLock,
    pub(crate) tickets: Tickets,
    pub(crate) transitions: Transitions,
    pub(crate) catch_ups: CatchUps,
    pub(crate) ttl: TtlStats,
    pub(crate) backups: Backups,
    pub(crate) spills: Arc<Spills>,
    pub(crate) rollbacks: Rollbacks,
    /// Came back from a backup and has not caught up.
    pub(crate) restored: AtomicBool,
    /// Standalone, on the data of a set's member.
    pub(crate) member_alone: AtomicBool,
    pub(crate) member_door: crate::replication::member_door::MemberDoor,
    /// Set while another member's files take the place of this one's: what is voted now would be forgotten.
    pub(crate) identity_is_staged: AtomicBool,
}

impl Server {
    /// What connections are served with.
    pub fn service(self: &Arc<Self>) -> pando_shell::Service<Server> {
        pando_shell::Service::new(self.clone(), |server| &server.registry)
    }
    /// Shows the replication core to those who watch from outside; `None` on a standalone node.
    pub fn inspect<T>(&self, ask: impl FnOnce(&pando_repl::topology::Core) -> T) -> Option<T> {
        self.coordinator.get().map(|c| c.read(ask))
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
