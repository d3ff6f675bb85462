//! What the config servers know, as this router knows it: shards, databases and where collections' documents are.
//!
//! ```text
//!   config.shards ──────► shards.rs ──► fleet's Registry
//!   config.databases ───► fetch.rs ─┐
//!   config.collections ─► fetch.rs ─┼─► shelf.rs (routing::cache) ──► Route of one operation
//!   config.chunks ──────► fetch.rs ─┘        ▲
//!                                            └── stale, said a shard
//! ```

mod fetch;
pub(crate) mod reads;
mod route;
mod shards;
mod shelf;
mod tables;

pub(crate) use reads::Ask;
pub(crate) use route::{Route, Target};

use crate::times::Times;
use pando_base::Result;
use pando_bson::DocBuf;
use pando_env::Env;
use pando_fleet::{Fleet, Registry, SetMonitor};
use shelf::Shelf;
use std::sync::Arc;
use tables::{KnownCollection, KnownDatabase};

/// The config servers' set.
pub(crate) struct ConfigServers {
    pub(crate) fleet: Fleet,
    pub(crate) set: SetMonitor,
    pub(crate) times: Arc<Times>,
}

/// See the module text.
pub(crate) struct Catalog {
    pub(crate) config: Arc<ConfigServers>,
    pub(crate) registry: Registry,
    databases: Shelf<KnownDatabase>,
    collections: Shelf<KnownCollection>,
}

impl Catalog {
    pub(crate) fn new(env: &Env, config: Arc<ConfigServers>) -> Catalog {
        let registry = Registry::new(config.fleet.monitors.clone());
        let servers = config.clone();
        let databases = Shelf::new(
            env.clone(),
            Arc::new(move |name, _| Box::pin(fetch::database(servers.clone(), name))),
        );
        let servers = config.clone();
        let fetch = move |ns, since| -> pando_env::BoxFuture<'static, _> {
            Box::pin(fetch::collection(servers.clone(), ns, since))
        };
        let collections = Shelf::new(env.clone(), Arc::new(fetch));
        Catalog { config, registry, databases, collections }
    }
    /// How many databases and collections are known.
    pub(crate) fn known(&self) -> (usize, usize) {
        (self.databases.len(), self.collections.len())
    }
    /// What is known of a collection is read again before it is used again.
    pub(crate) fn forget_collection(&self, ns: &str) {
        self.collections.forget(ns);
    }
    pub(crate) fn forget_database(&self, name: &str) {
        self.databases.forget(name);
        let prefix = format!("{name}.");
        self.collections.forget_where(|ns| ns.starts_with(&prefix));
    }
    pub(crate) fn forget_all(&self) {
        self.databases.forget_where(|_| true);
        self.collections.forget_where(|_| true);
    }
    /// Documents of a collection of `config`.
    pub(crate) async fn read(&self, ask: &Ask<'_>) -> Result<Vec<DocBuf>> {
        self.config.find(ask).await
    }
}
