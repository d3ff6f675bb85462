//! This process as a config server: the catalog manager, the times that it hands on, and who may not have a database here.

pub(crate) mod auto_merger;
pub(crate) mod balancer;
pub(crate) mod coordinators;
mod defragmenter;
pub(crate) mod shard_calls;
mod too_large;

use crate::Config;
use crate::lifecycle::Lifecycle;
use crate::replication::Replication;
use crate::sessions::LogicalSessions;
use crate::settings::Settings;
use crate::sharding::sections;
use pando_access::WriteOp;
use pando_access::WriteUnit;
use pando_access::observer::{Defined, Deleted, Inserted, OpObserver, Updated};
use pando_access::{InternalCollections, Uninterrupted};
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, SessionId, Timestamp, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_command::Param;
use pando_command::roles::ClusterRole;
use pando_config_server::{CatalogManager, Node, ns};
use pando_env::{BoxFuture, Component};
use pando_metrics::Collector;
use pando_routing::ShardId;
use pando_session::retryable::Retryable;
use pando_session::transaction::DurableState;
use pando_shard::ShardIdentity;
use pando_storage::ReadAt;
use pando_workflows::rename_collection;
use shard_calls::ShardCalls;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

pub(crate) struct ConfigServer {
    pub(crate) manager: CatalogManager,
    pub(crate) shards: ShardCalls,
    pub(crate) rounds: balancer::Rounds,
    pub(crate) defragmenter: defragmenter::Defragmenter,
    internal: InternalCollections,
    replication: Arc<Replication>,
    settings: Arc<Settings>,
    topology: Mutex<TopologyTime>,
}

/// When shards were last added or removed, and when that was read.
#[derive(Default)]
struct TopologyTime {
    at: Timestamp,
    read: Option<Duration>,
}

impl ConfigServer {
    /// `None` where this process is none.
    pub(crate) fn new(
        config: &Arc<Config>,
        internal: &InternalCollections,
        replication: &Arc<Replication>,
        sessions: &Arc<LogicalSessions>,
        settings: &Arc<Settings>,
    ) -> Option<Arc<ConfigServer>> {
        if config.cluster_role != Some(ClusterRole::Config) {
            return None;
        }
        let node = Arc::new(Here {
            config: config.clone(),
            replication: replication.clone(),
            retryable: sessions.retryable.clone(),
            settings: settings.clone(),
            internal: internal.clone(),
        });
        let manager = CatalogManager::new(replication.env().clone(), internal.clone(), node);
        let options =
            pando_rpc::Options { name: "Sharding", login: config.member_login(), ..Default::default() };
        let shards = ShardCalls::new(replication.env(), options, replication.peers.clone());
        let (internal, replication) = (internal.clone(), replication.clone());
        Some(Arc::new(ConfigServer {
            manager,
            shards,
            rounds: balancer::Rounds::default(),
            defragmenter: Default::default(),
            internal,
            replication,
            settings: settings.clone(),
            topology: Mutex::default(),
        }))
    }
    /// A new primary makes sure of what every decision takes for granted.
    pub(crate) async fn step_up(&self) -> Result<()> {
        self.rounds.done.store(0, std::sync::atomic::Ordering::Relaxed);
        self.manager.step_up();
        self.manager.prepare().await
    }
    pub(crate) fn rolled_back(&self) {
        self.manager.step_up();
    }
    /// Up to where what is here may be relied upon, and since when there are the shards that there are (SH-VER-7): nothing is told
    /// that can still be undone.
    pub(crate) fn append_times(&self, reply: &mut DocBuilder) {
        let committed = self.replication.committed();
        if committed == Timestamp::ZERO {
            return;
        }
        reply.timestamp("$configTime", committed).timestamp("$topologyTime", self.topology_time(committed));
    }
    fn topology_time(&self, committed: Timestamp) -> Timestamp {
        let now = self.replication.env().clock.mono();
        let mut topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Duration::from_millis(limits::TOPOLOGY_TIME_READ_MS);
        if topology.read.is_none_or(|read| now > read + fresh)
            && let Ok(shards) = self.internal.all(&ns("shards"), ReadAt::At(committed))
        {
            let times = shards.iter().filter_map(|doc| match doc.get("topologyTime") {
                Some(Value::Timestamp(t)) => Some(t),
                _ => None,
            });
            *topology = TopologyTime { at: times.max().unwrap_or(Timestamp(1)), read: Some(now) };
        }
        topology.at
    }
    /// What the primary of a shard answers.
    async fn on_shard(&self, shard: &ShardId, body: &RawDoc) -> Result<DocBuf> {
        let limit = Duration::from_millis(limits::SHARD_COMMAND_MS_MAX);
        self.shards.primary(&self.manager.metadata(), shard, body, limit).await
    }
    /// Of `metrics`.
    pub(crate) fn collect(&self, to: &mut Collector<'_>) {
        let help = "Chunks of the routing tables that this config server decides by";
        to.gauge("keptChunks", self.manager.kept_chunks() as i64, "chunks", help);
    }
    /// The next reply tells what is there by then.
    pub(crate) fn topology_changed(&self) {
        self.topology.lock().unwrap_or_else(PoisonError::into_inner).read = None;
    }
}

/// Sets that are shards may get other members at any time.
pub(crate) async fn follow_members(config_server: Arc<ConfigServer>, lifecycle: Arc<Lifecycle>) {
    let every = Duration::from_millis(limits::SHARD_MEMBERS_LOOK_MS);
    let replication = &config_server.replication;
    while lifecycle.pause(every).await {
        if !replication.member.accepts_writes() || !replication.member.is_replicated() {
            continue;
        }
        if let Err(e) = config_server.manager.follow_members(&Uninterrupted).await {
            let text = "The members of shards could not be written down; will try again";
            replication.env().log.warn(Component::Sharding, 9100091, text, |a| {
                a.data("error", &e);
            });
        }
    }
}

/// This process as the catalog manager sees it.
struct Here {
    config: Arc<Config>,
    replication: Arc<Replication>,
    retryable: Arc<Retryable>,
    settings: Arc<Settings>,
    internal: InternalCollections,
}

impl Node for Here {
    fn call<'a>(&'a self, host: &'a str, command: &'a RawDoc) -> BoxFuture<'a, Result<DocBuf>> {
        Box::pin(async move {
            let limit = Duration::from_millis(limits::SHARD_COMMAND_MS_MAX);
            let called = self.replication.peers.call(host, command, pando_rpc::Retry::Idempotent, limit);
            called.await.map_err(Error::from)
        })
    }
    fn await_majority(&self, upto: OpTime) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.replication.await_majority(upto))
    }
    fn committed(&self, session: SessionId, number: i64, at: OpTime) {
        let now = self.replication.env().clock.mono();
        self.retryable.learn(session, number, DurableState::Committed, at, now);
    }
    fn next_time(&self) -> Timestamp {
        self.replication.next_time()
    }
    fn number<'a>(&'a self, what: &'a str, of: &'a str) -> BoxFuture<'a, Result<Timestamp>> {
        Box::pin(async move {
            let at = self.replication.note(what, of)?;
            self.replication.await_majority(self.replication.last_applied()).await?;
            Ok(at)
        })
    }
    fn history_from(&self) -> Timestamp {
        let params = self.replication.params();
        let secs = |param| params.int(param).max(0);
        let kept =
            secs(Param::minSnapshotHistoryWindowInSeconds).max(secs(Param::transactionLifetimeLimitSeconds));
        let now = self.replication.env().clock.wall_ms().div_euclid(1000);
        Timestamp::new(u32::try_from(now.saturating_sub(kept)).unwrap_or(0), 0)
    }
    fn become_shard<'a>(&'a self, identity: &'a RawDoc) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let versions = Namespace::unchecked("admin", "system.version");
            let identity = ShardIdentity::parse(identity)?.to_doc();
            // It may have been a shard before, and gone while something was renamed.
            sections::leave_those_of(&self.internal, &[rename_collection::SECTION]).await?;
            self.internal.put(&Uninterrupted, &versions, &identity).await?;
            self.replication.await_majority(self.replication.last_applied()).await
        })
    }
    fn connection_string(&self) -> String {
        let name = self.config.repl_set.clone().unwrap_or_default();
        let hosts = self.replication.member.config().map_or(Vec::new(), |config| {
            let visible = config.members.iter().filter(|m| m.is_data_bearing() && !m.hidden);
            visible.map(|m| m.host.clone()).collect()
        });
        format!("{name}/{}", hosts.join(","))
    }
    fn feature_version(&self) -> String {
        self.settings.feature_version().version.to_owned()
    }
    fn host_port(&self) -> String {
        self.config.host_port()
    }
}

/// Config servers keep a cluster's metadata and nothing else, unless they are a shard, too.
pub(crate) struct NoUserDatabases(pub(crate) Weak<ConfigServer>);

impl OpObserver for NoUserDatabases {
    fn defined(&self, unit: &mut WriteUnit, event: &Defined<'_>) -> Result<()> {
        let Defined::Created { coll } = event else { return Ok(()) };
        if unit.is_applying() || matches!(coll.ns.db(), "admin" | "config" | "local") {
            return Ok(());
        }
        if let Some(config_server) = self.0.upgrade()
            && config_server.manager.may_hold_data()?
        {
            return Ok(());
        }
        let text = format!("Can't create user databases on a --configsvr instance {}", coll.ns);
        Err(Error::new(ErrorCode::InvalidNamespace, text))
    }
}

/// What users write into `config.chunks` themselves, the catalog manager has to hear of.
pub(crate) struct ChunksObserver(pub(crate) Weak<ConfigServer>);

impl ChunksObserver {
    fn written(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, of: &Namespace) {
        // The manager's own it knows of; `applyOps` applies.
        if op.of_server && !unit.is_applying() || *of != ns("chunks") {
            return;
        }
        let config_server = self.0.clone();
        unit.after_commit(move |_| {
            if let Some(config_server) = config_server.upgrade() {
                config_server.manager.chunks_were_written();
            }
        });
    }
}

impl OpObserver for ChunksObserver {
    fn inserted(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, event: &Inserted<'_>) -> Result<()> {
        self.written(unit, op, &event.coll.ns);
        Ok(())
    }
    fn updated(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, event: &Updated<'_>) -> Result<()> {
        self.written(unit, op, &event.coll.ns);
        Ok(())
    }
    fn deleted(&self, unit: &mut WriteUnit, op: &WriteOp<'_>, event: &Deleted<'_>) -> Result<()> {
        self.written(unit, op, &event.coll.ns);
        Ok(())
    }
}
