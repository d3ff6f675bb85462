//! The set of the config servers as a shard of its own cluster (SH-ROLE-1): how it becomes one, and how it is none any more.
//!
//! ```text
//!   dedicated ── become_shard ──► identity on a majority ─► entry of config.shards ─► a shard like the others
//!       ▲                                                                                  │
//!       └── entry gone ◄─ users' collections gone ◄─ no range left to delete ◄─ drained ◄──┘ leave_as_shard, asked again and again
//! ```
//! The identity stays: whoever still takes this set for a shard is told by it where to go. What tells whether users' data may lie here is
//! the entry.

use crate::manager::CatalogManager;
use crate::metadata::text;
use crate::mutexes::Subject;
use crate::remove_shard::{Draining, not_found};
use crate::shard_checks::{ConnectionString, NewShard};
use pando_access::Interrupt;
use pando_base::{Error, Result};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder};
use pando_env::BoxFuture;
use std::sync::atomic::Ordering::SeqCst;

/// The name that this set has as a shard.
pub const CONFIG_SHARD: &str = "config";

pub(crate) fn is_config(shard: &DocBuf) -> bool {
    text(shard, "_id").is_ok_and(|id| id == CONFIG_SHARD)
}

/// Drops the users' collections of this set, each as what lies here without belonging to anybody.
pub type ClearOut<'a> = dyn Fn() -> BoxFuture<'a, Result<()>> + Send + Sync + 'a;

/// While it is there nothing comes into being in a database of users.
pub(crate) struct Leaving<'a>(&'a CatalogManager);

impl<'a> Leaving<'a> {
    pub(crate) fn begin(manager: &'a CatalogManager) -> Leaving<'a> {
        manager.leaving.store(true, SeqCst);
        Leaving(manager)
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leaving.store(false, SeqCst);
    }
}

impl CatalogManager {
    /// Whether users' data may lie on this set: while it is a shard, from the first moment to the last.
    pub fn may_hold_data(&self) -> Result<bool> {
        Ok(!self.leaving.load(SeqCst) && self.metadata().shard(CONFIG_SHARD)?.is_some())
    }
    /// Makes this set a shard; nothing where it is one. `own` are the databases of users that lie here: it brings them along.
    pub async fn become_shard(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        own: impl Fn() -> Vec<String>,
    ) -> Result<()> {
        self.prepare().await?;
        let _membership = self.lock_membership(interrupt).await?;
        let _topology = self.lock(interrupt, Subject::Topology).await?;
        if self.metadata().shard(CONFIG_SHARD)?.is_some() {
            return Ok(());
        }
        let connection = ConnectionString::parse(&self.node.connection_string())?;
        let new = NewShard { connection, name: Some(CONFIG_SHARD.to_owned()) };
        let shards = self.metadata().shards()?;
        if let Some(other) = new.among(&shards)? {
            return Err(Error::internal(format!("the config servers are the shard {other}")));
        }
        self.node.become_shard(&self.identity_of(CONFIG_SHARD)?).await?;
        let bring = || new.check_databases(&listed(&own()), CONFIG_SHARD, &self.metadata().databases()?);
        // Databases come into being meanwhile, and a name may be taken only once.
        let _guards = self.lock_databases(interrupt, &bring()?).await?;
        self.write(interrupt, &self.entries(CONFIG_SHARD, &new.connection, &bring()?)).await?;
        let mut details = DocBuilder::new();
        details.str("name", CONFIG_SHARD).str("host", &new.connection.to_string());
        self.log_change(client, "addShard", "", &details.finish()).await;
        Ok(())
    }
    /// One step of the way back, as [`CatalogManager::remove_shard`] makes it for others.
    pub async fn leave_as_shard(
        &self,
        interrupt: &dyn Interrupt,
        client: &str,
        clear_out: &ClearOut<'_>,
    ) -> Result<Draining> {
        self.prepare().await?;
        let _topology = self.lock(interrupt, Subject::Topology).await?;
        let _zones = self.lock(interrupt, Subject::Zones).await?;
        let shards = self.metadata().shards()?;
        let own = shards.iter().find(|doc| is_config(doc)).ok_or_else(|| not_found(CONFIG_SHARD))?;
        self.drain(interrupt, client, &shards, own, Some(clear_out)).await
    }
    /// Ranges that wait to be deleted here, those that may still come back included.
    pub(crate) fn pending_range_deletions(&self) -> Result<i64> {
        self.metadata().count("rangeDeletions", |_| true)
    }
}

/// As `listDatabases` shows them.
fn listed(names: &[String]) -> DocBuf {
    let mut list = ArrayBuilder::new();
    for name in names {
        list.doc(|d| _ = d.str("name", name));
    }
    list.finish()
}
