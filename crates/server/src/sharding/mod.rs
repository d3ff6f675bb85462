//! This set as a shard of a cluster: who it is, and how it learns what it owns (SYS-201, SYS-211 to SYS-213).
//!
//! ```text
//!   admin.system.version {_id: "shardIdentity"} ─► identity.rs ─► Cluster (config servers, their catalog)
//!   the door refuses a request ─► note ─► learn.rs ─► config servers ─► FilteringMetadata ◄─ the door
//! ```
//! * [`identity`] — becomes a shard when the document is written, and at the start where it is there already;
//! * [`learn`] — after a refusal, before the sender is told: asks the config servers, or waits for a change of ownership;
//! * [`cached_metadata`] — the primary writes down what it learns, its secondaries have it from the log;
//! * [`sections`] — critical sections, which every member takes from a collection;
//! * [`fences`] — what a shard remembers of definitions that others coordinate, so that late commands do nothing;
//! * [`donations`], [`receptions`] — ranges that move away from here, and here;
//! * [`deletions`] — ranges that are to be deleted are taken up by a workflow;
//! * [`statistics`] — what migrations have done here, and what they cost;
//! * [`vector_clock`] — of which times this shard has heard, for the next primary;
//! * [`time_keys`] — the keys that the cluster's times are signed with;
//! * [`orphans`] — how many documents wait to be deleted;
//! * [`ddl_locks`] — one definition at a time for each name.
//!
//! Definitions of the cluster's collections are workflows (`pando_workflows::ddl`), whose steps are in `commands/shardsvr/ddl`.

pub(crate) mod cached_metadata;
pub(crate) mod ddl_locks;
pub(crate) mod deletions;
pub(crate) mod donations;
pub(crate) mod fences;
pub(crate) mod identity;
pub(crate) mod learn;
pub(crate) mod moving_databases;
mod name_locks;
pub(crate) mod orphans;
pub(crate) mod receptions;
pub(crate) mod sections;
pub(crate) mod shard_key_indexes;
pub(crate) mod statistics;
pub(crate) mod time_keys;
mod vector_clock;

use crate::replication::Replication;
use cached_metadata::CachedMetadata;
use name_locks::NameLocks;
use pando_access::InternalCollections;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use pando_command::GenericArgs;
use pando_env::{BoxFuture, Env};
use pando_fleet::{Fleet, Monitors};
use pando_metadata_cache::{ConfigServers, MetadataCache, Times};
use pando_monitor::ReadPreference;
use pando_routing::ShardId;
use pando_rpc::{Bounds, Gossip, Options, Pool, Retry, Sequence};
use pando_shard::{FilteringMetadata, ShardIdentity};
use std::sync::{Arc, OnceLock};

/// What makes a step of a coordinator on this node: it needs parts of the server that know of this one.
pub(crate) type OwnSteps = Arc<dyn Fn(DocBuf) -> BoxFuture<'static, Result<DocBuf>> + Send + Sync>;

/// A shard's part in its cluster. Made where the process was started with `--shardsvr`, or with `--configsvr`: config servers may be a
/// shard, too.
pub(crate) struct Sharding {
    env: Env,
    on_config_servers: bool,
    options: Options,
    pub(crate) metadata: Arc<FilteringMetadata>,
    pub(crate) ddl_locks: ddl_locks::DdlLocks,
    pub(crate) donations: Arc<donations::Donations>,
    pub(crate) receptions: receptions::Receptions,
    pub(crate) moving_databases: moving_databases::MovingDatabases,
    pub(crate) statistics: Arc<statistics::ShardingStatistics>,
    donor_times: statistics::DonorTimes,
    /// Of names in whose definitions this shard takes part.
    pub(crate) part_locks: ddl_locks::DdlLocks,
    steps: OnceLock<OwnSteps>,
    cached: OnceLock<CachedMetadata>,
    /// What is learnt of one name is taken over in the order in which it was asked for.
    refreshes: NameLocks,
    cluster: OnceLock<Arc<Cluster>>,
    times: Arc<Times>,
    /// What this set's calls tell and hear of the cluster time.
    clock: OnceLock<Arc<dyn Gossip>>,
}

/// The cluster that this shard belongs to.
pub(crate) struct Cluster {
    pub(crate) identity: Arc<ShardIdentity>,
    pub(crate) fleet: Fleet,
    pub(crate) catalog: MetadataCache,
}

impl Sharding {
    /// `options` are those of calls to other nodes.
    pub(crate) fn new(
        env: &Env,
        options: Options,
        metadata: Arc<FilteringMetadata>,
        on_config_servers: bool,
    ) -> Sharding {
        let statistics = Arc::<statistics::ShardingStatistics>::default();
        Sharding {
            env: env.clone(),
            on_config_servers,
            options,
            metadata,
            ddl_locks: Default::default(),
            donations: Arc::new(donations::Donations::new(statistics.clone())),
            receptions: Default::default(),
            moving_databases: Default::default(),
            statistics,
            donor_times: Default::default(),
            part_locks: Default::default(),
            steps: OnceLock::new(),
            cached: OnceLock::new(),
            refreshes: NameLocks::default(),
            cluster: OnceLock::new(),
            times: Arc::default(),
            clock: OnceLock::new(),
        }
    }
    /// From now on steps of coordinators are made so.
    pub(crate) fn take_steps(&self, steps: OwnSteps) {
        let _ = self.steps.set(steps);
    }
    /// One step that this node makes for a coordinator.
    pub(crate) async fn own_step(&self, body: &RawDoc) -> Result<DocBuf> {
        let none = || Error::internal("the server is not put together yet");
        self.steps.get().ok_or_else(none)?(body.to_buf()).await
    }
    /// From now on this set is that shard.
    pub(crate) fn become_shard(&self, identity: ShardIdentity) {
        self.metadata.become_shard(identity);
    }
    pub(crate) fn join_set(&self, internal: &InternalCollections, replication: &Arc<Replication>) {
        let _ = self.clock.set(replication.clock.clone());
        let _ = self.cached.set(CachedMetadata::new(internal.clone(), replication.clone()));
    }
    fn cached(&self) -> Result<&CachedMetadata> {
        self.cached.get().ok_or_else(|| Error::internal("the server is not put together yet"))
    }
    /// Its name in the cluster, once it has one.
    pub(crate) fn shard_name(&self) -> Option<&str> {
        self.metadata.identity().map(|identity| identity.shard.as_str())
    }
    /// Another node of the cluster has told what it has heard of the cluster's metadata.
    pub(crate) fn hear(&self, args: &GenericArgs) {
        self.times.advance(args.config_time, args.topology_time);
    }
    pub(crate) fn append_times(&self, reply: &mut DocBuilder) {
        self.times.append(reply);
    }
    /// The cluster, whose nodes are called from here; 203 where this set is no shard yet.
    pub(crate) fn cluster(&self) -> Result<&Arc<Cluster>> {
        let identity = self.metadata.expect_identity()?;
        Ok(self.cluster.get_or_init(|| {
            let times = self.times.clone();
            let mut gossips = times.gossips_of_metadata();
            gossips.extend(self.clock.get().cloned());
            let pool = Pool::with(self.env.clone(), self.options.clone(), Bounds::default(), gossips);
            let monitors = Monitors::new(self.env.clone(), self.options.clone(), pool.clone());
            let hosts = identity.config_hosts.iter().map(String::as_str);
            let set = monitors.of(&identity.config_set, hosts);
            let fleet = Fleet { env: self.env.clone(), monitors, pool };
            let config = Arc::new(ConfigServers { fleet: fleet.clone(), set, times });
            let catalog = MetadataCache::new(&self.env, config);
            Arc::new(Cluster { identity: identity.clone(), fleet, catalog })
        }))
    }
}

impl Cluster {
    /// A command to the config servers' primary.
    pub(crate) async fn on_config(&self, body: &RawDoc) -> Result<DocBuf> {
        acknowledged(self.catalog.config.command(body, Retry::Idempotent).await?)
    }
    /// A command of a workflow to a shard's primary: what was begun goes on while the writes of users are blocked.
    pub(crate) async fn on_shard(&self, shard: &ShardId, body: &RawDoc) -> Result<DocBuf> {
        self.on_shard_with(shard, body, &[], true).await
    }
    /// The same with documents, for somebody who may write meanwhile, or may not.
    pub(crate) async fn on_shard_with(
        &self,
        shard: &ShardId,
        body: &RawDoc,
        sequences: &[Sequence<'_>],
        passes: bool,
    ) -> Result<DocBuf> {
        let mut b = DocBuilder::with_capacity(body.byte_len() + 32);
        b.elems_of(body).bool("mayBypassWriteBlocking", passes);
        let body = &b.finish();
        let set = self.catalog.set_of(shard).await?;
        let (primary, limit) = (ReadPreference::default(), pando_metadata_cache::limit());
        let answer = self.fleet.call(&set, &primary, body, sequences, Retry::Idempotent, limit).await?;
        acknowledged(answer.reply)
    }
    /// All shards but this one.
    pub(crate) async fn others(&self) -> Result<Vec<ShardId>> {
        let shards = self.catalog.refresh_shards().await?;
        let ids = shards.iter().map(|s| s.entry.id.clone());
        Ok(ids.filter(|id| *id != self.identity.shard).collect())
    }
}

/// A reply that is `ok` may tell beside it that no majority has what was done: a definition does not go on upon that.
pub(crate) fn acknowledged(reply: DocBuf) -> Result<DocBuf> {
    let Some(e) = reply.get("writeConcernError").and_then(|v| v.as_doc()) else { return Ok(reply) };
    let code = e.get("code").and_then(|v| v.as_i64()).and_then(|code| i32::try_from(code).ok());
    let text = e.get("errmsg").and_then(|v| v.as_str()).unwrap_or("a majority was not reached").to_owned();
    Err(Error::new(code.map_or(ErrorCode::WriteConcernFailed, ErrorCode), text))
}
