//! Start, shutdown, and the handle that commands hold.

use crate::cursors::spill::Spills;
use crate::lifecycle::shutdown::Shutdown;
use crate::replication::rollback::Rollbacks;
use crate::replication::services::Services;
use crate::replication::transitions::{CatchUps, Transitions};
use crate::settings::feature_version::FeatureVersion;
use crate::settings::feature_version_guard::FeatureVersionGuard;
use crate::settings::profiling::Profiling;
use crate::settings::rw_defaults::RwDefaults;
use crate::statistics::top::Top;
use crate::upkeep::backups::Backups;
use crate::upkeep::flow_control::Tickets;
use crate::upkeep::fsync_lock::FsyncLock;
use crate::{Config, cursors::body::CursorBody, tasks, upkeep::ttl::TtlStats};
use pando_access::InternalCollections;
use pando_base::Result;
use pando_bson::ObjectId;
use pando_catalog::Resource;
use pando_catalog::lock::Lock;
use pando_catalog::{Catalog, OpenOptions};
use pando_command::{Instance, OpCtx, Param, Registry};
use pando_env::sync::Notify;
use pando_env::{Component, Env};
use pando_repl::data::initial_sync::InitialSync;
use pando_repl::data::{DataPath, Progress};
use pando_repl::{Coordinator, Repl};
use pando_session::retryable::Retryable;
use pando_session::{Cursors, Sessions};
use pando_storage::{Storage, staging};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long a clean shutdown waits for operations that were told to stop.
const DRAIN_LIMIT: Duration = Duration::from_secs(pando_base::limits::SHUTDOWN_DRAIN_SECS_MAX);

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
    pub(crate) initial_sync: Mutex<Option<InitialSync>>,
    pub cursors: Cursors<CursorBody>,
    pub sessions: Sessions,
    pub(crate) session_rounds: crate::sessions::refresh::Rounds,
    pub retryable: Arc<Retryable>,
    pub(crate) sessions_known: crate::sessions::kept::Known,
    pub(crate) session_rows: crate::sessions::kept::Rows,
    pub(crate) sessions_waiting: crate::sessions::kept::Waiting,
    pub(crate) cluster_time_keys: crate::sessions::cluster_time_keys::ClusterTimeKeys,
    /// How many there were.
    pub(crate) map_reduces: AtomicU64,
    pub(crate) change_streams: Arc<crate::change_stream::Metrics>,
    pub(crate) txn_metrics: Arc<crate::transaction::metrics::Metrics>,
    pub(crate) rw_defaults: RwDefaults,
    pub(crate) cluster_parameters: crate::settings::cluster_parameters::ClusterParameters,
    pub(crate) user_writes: crate::settings::user_writes::UserWrites,
    feature_version: Mutex<FeatureVersion>,
    /// Held while it is changed.
    pub(crate) feature_version_lock: Lock,
    pub(crate) profiling: Profiling,
    /// Milliseconds of oplog that its size bound does not take away; 0 = only the size counts.
    pub(crate) oplog_retention_ms: AtomicU64,
    /// The process is to start again with other files.
    restart: AtomicBool,
    pub(crate) top: Arc<Top>,
    pub(crate) open_buckets: crate::timeseries::OpenBuckets,
    pub(crate) index_builds: crate::upkeep::index_builds::Inbox,
    pub(crate) fsync_lock: FsyncLock,
    pub(crate) tickets: Tickets,
    pub(crate) transitions: Transitions,
    pub(crate) catch_ups: CatchUps,
    pub(crate) ttl: TtlStats,
    pub(crate) backups: Backups,
    pub(crate) spills: Arc<Spills>,
    pub(crate) stopping: Shutdown,
    pub(crate) rollbacks: Rollbacks,
    /// Came back from a backup and has not caught up.
    pub(crate) restored: AtomicBool,
    /// Standalone, on the data of a set's member.
    pub(crate) member_alone: AtomicBool,
    pub(crate) member_door: crate::replication::member_door::MemberDoor,
    /// Set while another member's files take the place of this one's: what is voted now would be forgotten.
    pub(crate) identity_is_staged: AtomicBool,
    /// Why the process must end at once.
    fatal: Mutex<Option<String>>,
}

impl Server {
    /// Opens the data, recovers, takes its place in the replica set and starts the background tasks.
    pub async fn start(env: Env, mut config: Config) -> Result<Arc<Server>> {
        let params = std::mem::take(&mut config.params);
        let instance = Instance::new(env.clone(), params);
        let replicated = config.repl_set.is_some();
        config.storage.replicated = true;
        if replicated {
            crate::replication::member_alone::check_params(&instance.params)?;
        }
        let retention = config.oplog_min_retention.as_millis() as u64;
        if staging::adopt_staged(&*env.disk)? {
            env.log.info(Component::InitSync, 9100021, "The copied files are this node's data now", |_| {});
        }
        let storage = Storage::open(env.clone(), config.storage.clone())?;
        // Until it is known which transactions are prepared.
        storage.hold_log(replicated);
        let catalog = Catalog::open(env.clone(), storage.clone(), OpenOptions { replset: replicated })?;
        let spills = Spills::open(&env)?;
        let repl = Repl::new(config.repl_set.clone(), new_object_id(&env));
        let (points, rng) = (instance.clone(), env.rng.clone());
        catalog.hold_builds_while(move || {
            let at = |name: &str| points.fail_points.get(name).and_then(|p| p.check(&*rng, |_| true));
            if let Some(data) = at("failIndexBuildWithError") {
                let code = data.get("error").and_then(|v| v.as_i64()).unwrap_or_default() as i32;
                return Err(pando_base::Error::new(
                    pando_base::ErrorCode(code),
                    "the fail point 'failIndexBuildWithError' is on",
                ));
            }
            Ok(at("hangAfterStartingIndexBuild").is_some())
        });
        let data_pool = pando_rpc::Pool::new(env.clone(), pando_rpc::Options::default());
        let server = Arc::new(Server {
            env,
            config,
            instance,
            registry: crate::commands::registry(),
            storage,
            internal: InternalCollections::new(catalog.clone()),
            catalog,
            repl: Arc::new(repl),
            coordinator: OnceLock::new(),
            services: OnceLock::new(),
            stepped_up: Notify::new(),
            progress: Arc::default(),
            data_path: Mutex::default(),
            data_pool,
            initial_sync: Mutex::default(),
            cursors: Cursors::default(),
            sessions: Sessions::default(),
            sessions_known: Default::default(),
            session_rows: Default::default(),
            sessions_waiting: Default::default(),
            session_rounds: Default::default(),
            retryable: Arc::default(),
            cluster_time_keys: Default::default(),
            map_reduces: AtomicU64::new(0),
            change_streams: Arc::default(),
            txn_metrics: Arc::default(),
            rw_defaults: RwDefaults::default(),
            cluster_parameters: Default::default(),
            user_writes: Default::default(),
            feature_version: Mutex::default(),
            feature_version_lock: Lock::of(Resource::FeatureVersion),
            profiling: Profiling::default(),
            oplog_retention_ms: AtomicU64::new(retention),
            restart: AtomicBool::new(false),
            top: Arc::default(),
            open_buckets: Default::default(),
            index_builds: Default::default(),
            fsync_lock: FsyncLock::default(),
            tickets: Tickets::default(),
            transitions: Transitions::default(),
            catch_ups: CatchUps::default(),
            ttl: TtlStats::default(),
            backups: Backups::default(),
            spills,
            stopping: Shutdown::default(),
            rollbacks: Rollbacks::default(),
            member_alone: AtomicBool::new(false),
            restored: AtomicBool::new(false),
            member_door: Default::default(),
            identity_is_staged: AtomicBool::new(false),
            fatal: Mutex::new(None),
        });
        server.catalog.add_observer(Arc::new(FeatureVersionGuard(Arc::downgrade(&server))));
        server.catalog.add_observer(Arc::new(server.user_writes.clone()));
        if replicated {
            server.catalog.judge_builds();
            server.show_tables()?;
        }
        tasks::spawn_all(&server);
        let stepped_up = server.stepped_up.version();
        server.take_back_identity().await?;
        server.take_place().await?;
        if server.catalog.gate().is_read_only() {
            return Ok(server);
        }
        if !replicated {
            server.catalog.drop_temp_collections().await?;
            server.catalog.resume_builds().await?;
        } else if server.repl.is_alone() {
            server.stepped_up.changed(stepped_up).await;
        }
        Ok(server)
    }

    pub(crate) fn feature_version(&self) -> FeatureVersion {
        *self.feature_version.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Also as a parameter, which tells the version alone.
    pub(crate) fn set_feature_version(&self, v: FeatureVersion) {
        *self.feature_version.lock().unwrap_or_else(PoisonError::into_inner) = v;
        self.instance.params.force_text(Param::featureCompatibilityVersion, v.version);
    }
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

    /// Asks the process to end (the `shutdown` command, a signal); the one who runs it waits in
    /// [`Server::wait_shutdown_requested`].
    pub fn request_shutdown(&self) {
        self.stopping.request(None);
    }
    /// The same, to start again at once: a copy of another member's files waits to be taken over.
    pub(crate) fn request_restart(&self) {
        self.restart.store(true, SeqCst);
        self.stopping.request(Some(self.env.clock.mono()));
    }
    /// Whoever runs the process starts it again after [`Server::shutdown`].
    pub fn wants_restart(&self) -> bool {
        self.restart.load(SeqCst)
    }
    pub async fn wait_shutdown_requested(&self) {
        self.stopping.wait_requested().await;
    }
    /// Background work has been told to end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_stopping()
    }
    pub fn is_shutdown_requested(&self) -> bool {
        self.stopping.is_requested()
    }
    /// Set after an error that nothing can be done about: exit at once, without a checkpoint.
    pub fn fatal_error(&self) -> Option<String> {
        self.fatal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// The log cannot be trusted any more: stop everything without writing.
    pub(crate) fn fatal(&self, what: &str, why: &str) {
        self.env.log.fatal(Component::Storage, 23090, "Fatal assertion", |a| {
            a.str("what", what).str("error", why);
        });
        *self.fatal.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("{what}: {why}"));
        self.instance.begin_shutdown();
        self.stopping.request(None);
        self.stopping.stop_tasks();
    }

    /// The second half of a clean end, after [`Server::take_leave`]: no new commands, running ones are told to stop, the log is synced and a checkpoint is left.
    pub async fn shutdown(&self) -> Result<()> {
        let log = &self.env.log;
        self.services().inspect(|s| s.hooks.shutdown());
        if let Some(c) = self.coordinator.get() {
            c.shut_down();
        }
        self.catalog.gate().close();
        self.instance.begin_shutdown();
        self.abort_open_transactions();
        let deadline = self.env.clock.mono() + DRAIN_LIMIT;
        loop {
            let running = self
                .instance
                .clients
                .kill_where(pando_base::ErrorCode::InterruptedAtShutdown, |c, _| c.is_connection());
            self.abort_open_transactions();
            if running == 0 || self.env.clock.mono() >= deadline {
                break;
            }
            self.env.clock.sleep(Duration::from_millis(10)).await;
        }
        self.stop_data_path().await?;
        self.catalog.end_builds("the server shuts down").await;
        self.cursors.kill_where(self.env.clock.mono(), |_| true);
        self.stopping.stop_tasks();
        if let Some(why) = self.fatal_error() {
            return Err(pando_base::Error::internal(why));
        }
        log.info(Component::Storage, 4784930, "Shutting down the storage engine", |_| {});
        let storage = self.storage.clone();
        let flushed =
            self.env.offload(move || storage.log().flush_once().and_then(|()| storage.sync_local())).await;
        flushed.unwrap_or_else(|| Err(pando_base::Error::internal("the last flush failed")))?;
        self.checkpoint().await?;
        self.storage.note_log_ends()?;
        log.info(Component::Control, 20565, "Now exiting", |_| {});
        Ok(())
    }

    /// For crash tests: background work stops at once and nothing more is written.
    pub fn abandon(&self) {
        self.catalog.abandon_builds("the server stops");
        self.instance.begin_shutdown();
        self.stopping.stop_tasks();
    }

    /// `fsync`: the log is synced and the tables stand at it.
    pub(crate) async fn checkpoint_now(&self, ctx: &OpCtx) -> Result<()> {
        let log = self.storage.log();
        ctx.interruptible(log.wait_durable(log.visible())).await??;
        self.checkpoint().await.map(drop)
    }
}

/// Four bytes of time, eight of chance.
pub(crate) fn new_object_id(env: &Env) -> ObjectId {
    let mut id = [0; 12];
    env.rng.fill(&mut id);
    let secs = (env.clock.wall_ms() / 1000) as u32;
    id[..4].copy_from_slice(&secs.to_be_bytes());
    ObjectId(id)
}
