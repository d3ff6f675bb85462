//! What the config servers know, as another node of the cluster knows it: shards, databases and where collections' documents are.
//!
//! ```text
//!   config.shards ──────► shards.rs ──► fleet's Registry
//!   config.databases ───► fetch.rs ─┐
//!   config.collections ─► fetch.rs ─┼─► shelf.rs (routing::cache) ──► Route of one operation
//!   config.chunks ──────► fetch.rs ─┘        ▲
//!                                            └── stale, said a shard
//! ```

mod fetch;
mod reads;
mod route;
mod shards;
mod shelf;
mod single;
mod statistics;
mod tables;
pub mod testing;
mod time_keys;
mod times;

pub use reads::{Ask, limit};
pub use route::{Route, Target};
pub use time_keys::{TimeKeys, of_cluster as time_keys_of_cluster};
pub use times::Times;

use pando_base::Result;
use pando_bson::{DocBuf, RawDoc};
use pando_env::Env;
use pando_fleet::{Fleet, Registry, SetMonitor};
use pando_monitor::ReadPreference;
use pando_routing::{ChunkVersion, DatabaseEntry, DatabaseVersion, RoutingTable};
use pando_rpc::{CallResult, Retry};
use shelf::Shelf;
use single::Single;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub use tables::{KnownCollection, KnownDatabase};

/// The config servers' set.
pub struct ConfigServers {
    pub fleet: Fleet,
    pub set: SetMonitor,
    pub times: Arc<Times>,
}

impl ConfigServers {
    /// A command for their primary, on `admin`.
    pub async fn command(&self, body: &RawDoc, retry: Retry) -> CallResult<DocBuf> {
        let primary = ReadPreference::default();
        let answer = self.fleet.call(&self.set, &primary, body, &[], retry, reads::limit()).await?;
        Ok(answer.reply)
    }
}

/// See the module text.
pub struct MetadataCache {
    pub config: Arc<ConfigServers>,
    pub registry: Registry,
    reading_shards: Single,
    databases: Shelf<KnownDatabase>,
    collections: Shelf<KnownCollection>,
    refreshes: Arc<statistics::Refreshes>,
}

impl MetadataCache {
    pub fn new(env: &Env, config: Arc<ConfigServers>) -> MetadataCache {
        let registry = Registry::new(config.fleet.monitors.clone());
        let servers = config.clone();
        let databases = Shelf::new(
            env.clone(),
            Arc::new(move |name, _| Box::pin(fetch::database(servers.clone(), name))),
        );
        let servers = config.clone();
        let refreshes = Arc::<statistics::Refreshes>::default();
        let counts = refreshes.clone();
        let fetch = move |ns, since| -> pando_env::BoxFuture<'static, _> {
            Box::pin(fetch::collection(servers.clone(), counts.clone(), ns, since))
        };
        let collections = Shelf::new(env.clone(), Arc::new(fetch));
        let reading_shards = Single::default();
        MetadataCache { config, registry, reading_shards, databases, collections, refreshes }
    }
    /// The table of a collection, with its ticket; how long it is waited for is counted.
    async fn table(&self, ns: &str) -> Result<(u64, KnownCollection)> {
        if let Some(fresh) = self.collections.fresh(ns) {
            return Ok(fresh);
        }
        let clock = &self.config.fleet.env.clock;
        let begun = clock.mono();
        let got = self.collections.get(ns).await;
        self.refreshes.waited_us.add(clock.mono().saturating_sub(begun).as_micros() as u64);
        got
    }
    /// What the config servers say of a collection, as new as `wanted`, where a sender has spoken of that; nothing where it is not
    /// sharded, or not there.
    pub async fn collection(
        &self,
        ns: &str,
        wanted: Option<ChunkVersion>,
    ) -> Result<Option<Arc<RoutingTable>>> {
        if let Some(wanted) = wanted {
            self.collections.stale(ns, 0, Some(wanted));
        }
        Ok(self.table(ns).await?.1.0)
    }
    /// The same of a database.
    pub async fn database_entry(
        &self,
        name: &str,
        wanted: Option<DatabaseVersion>,
    ) -> Result<Option<Arc<DatabaseEntry>>> {
        if let Some(wanted) = wanted {
            self.databases.stale(name, 0, Some(wanted));
        }
        Ok(self.databases.get(name).await?.1.0)
    }
    /// What has changed of a collection is read before it is used again.
    pub fn renew_collection(&self, ns: &str) {
        self.collections.renew(ns);
    }
    /// All of it is read again: what is known may be wrong, not only old.
    pub fn forget_collection(&self, ns: &str) {
        self.collections.forget(ns);
    }
    pub fn forget_database(&self, name: &str) {
        self.databases.forget(name);
        let prefix = format!("{name}.");
        self.collections.forget_where(|ns| ns.starts_with(&prefix));
    }
    pub fn forget_all(&self) {
        self.databases.forget_where(|_| true);
        self.collections.forget_where(|_| true);
    }
    /// Documents of a collection of `config`.
    pub async fn read(&self, ask: &Ask<'_>) -> Result<Vec<DocBuf>> {
        self.config.find(ask).await
    }
}

pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
