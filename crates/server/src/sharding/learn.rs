//! What a shard does about a refusal before it tells the sender (SYS-212, SYS-213, SH-PROTO-3).
//!
//! The sender asks the config servers, too, and tries again: what this shard learns here it will judge that by. A failure to learn is
//! only logged, since the sender has its answer.

use super::Sharding;
use pando_base::{Error, ErrorCode, Namespace, Result, limits};
use pando_command::OpCtx;
use pando_env::Component;
use pando_routing::{DatabaseEntry, RoutingTable};
use pando_shard::Why;
use pando_shard::metadata::{Asking, Known, KnownDatabase};
use std::sync::Arc;
use std::time::Duration;

impl Sharding {
    /// Whatever the operation was refused for.
    pub(crate) async fn learn(&self, ctx: &OpCtx) {
        let refusals = ctx.take_refusals::<Why>();
        for why in refusals.iter().take(limits::SHARD_REFRESHES_PER_OP_MAX) {
            if let Why::RefreshCollection(_) = &**why {
                self.statistics.stale.inc();
            }
            let learning = async {
                match &**why {
                    Why::RefreshCollection(ns) => self.refresh(ns, ctx).await,
                    Why::RefreshDatabase(db) => self.refresh_database(db, ctx).await,
                    Why::AwaitSection(ns) => self.await_section(ns, ctx).await,
                }
            };
            if let Err(e) = ctx.interruptible(learning).await.and_then(|learnt| learnt) {
                self.env.log.warn(Component::Sharding, 22062, "Failed to refresh metadata", |a| {
                    a.str("what", &format!("{why:?}")).data("error", &e);
                });
            }
        }
    }
    /// The section may wait for what a transaction has locked (T-PLACE-4): a transaction does not wait for it for ever, but is told that it
    /// cannot go on.
    async fn await_section(&self, ns: &Namespace, ctx: &OpCtx) -> Result<()> {
        let ended = self.metadata.section_ended(ns);
        if !ctx.in_txn() {
            ended.await;
            return Ok(());
        }
        let limit = Duration::from_millis(limits::SECTION_AWAITED_IN_TRANSACTION_MS);
        let late =
            || Error::new(ErrorCode::LockTimeout, "a transaction waits for a critical section no longer");
        self.env.timeout(limit, ended).await.ok_or_else(late)
    }
    async fn refresh(&self, ns: &Namespace, ctx: &OpCtx) -> Result<()> {
        let _turn = self.refreshes.of(ns.as_str()).exclusive(&self.env.clock).await;
        for _ in 0..limits::SHARD_REFRESHES_PER_OP_MAX {
            let asking = self.metadata.ask(ns);
            let table = match self.cached()? {
                cached if cached.is_kept_here() => {
                    self.cluster()?.catalog.collection(ns.as_str(), ctx.shard_version).await?
                }
                cached => {
                    let known = self.metadata.known(ns).version();
                    // Somebody else's turn may have brought it.
                    if known.zip(ctx.shard_version).is_some_and(|(known, wanted)| known.is_as_new_as(wanted))
                    {
                        break;
                    }
                    cached.collection(ctx, ns).await?
                }
            };
            if self.take_over(asking, ns, table).await? {
                break;
            }
        }
        Ok(())
    }
    /// What the config servers have said is written down for the secondaries before anybody is judged by it. False where the collection
    /// was forgotten since they were asked: then it may be of before.
    async fn take_over(
        &self,
        asking: Asking<'_>,
        ns: &Namespace,
        table: Option<Arc<RoutingTable>>,
    ) -> Result<bool> {
        let cached = self.cached()?;
        if cached.is_kept_here() && asking.is_current() {
            cached.write(ns, table.as_ref()).await?;
        }
        Ok(asking.install(table))
    }
    async fn refresh_database(&self, db: &str, ctx: &OpCtx) -> Result<()> {
        let _turn = self.refreshes.of(db).exclusive(&self.env.clock).await;
        let cached = self.cached()?;
        if !cached.is_kept_here() {
            return self.install_database(db, cached.database(ctx, db).await?);
        }
        let entry = self.cluster()?.catalog.database_entry(db, ctx.database_version).await?;
        cached.write_database(db, entry.as_deref()).await?;
        self.install_database(db, entry)
    }
    fn install_database(&self, db: &str, entry: Option<Arc<DatabaseEntry>>) -> Result<()> {
        let own = &self.metadata.expect_identity()?.shard;
        let here = entry.filter(|e| e.primary == *own);
        let known = here.map_or(KnownDatabase::Elsewhere, |e| KnownDatabase::Here(e.version));
        self.metadata.install_database(db, known);
        Ok(())
    }
    /// Asks where nothing is known of a collection or its database.
    pub(crate) async fn make_known(&self, ns: &Namespace, ctx: &OpCtx) -> Result<()> {
        if self.metadata.known_database(ns.db()).is_none() {
            ctx.interruptible(self.refresh_database(ns.db(), ctx)).await??;
        }
        match self.metadata.known(ns) {
            Known::Nothing => ctx.interruptible(self.refresh(ns, ctx)).await?,
            Known::Unsharded | Known::Sharded(_) => Ok(()),
        }
    }
    /// Asks the config servers anew, whatever is known.
    pub(crate) async fn refresh_anew(&self, ns: &Namespace) -> Result<()> {
        let _turn = self.refreshes.of(ns.as_str()).exclusive(&self.env.clock).await;
        let catalog = &self.cluster()?.catalog;
        loop {
            let asking = self.metadata.ask(ns);
            catalog.renew_collection(ns.as_str());
            let table = catalog.collection(ns.as_str(), None).await?;
            if self.take_over(asking, ns, table).await? {
                return Ok(());
            }
        }
    }
    pub(crate) async fn refresh_database_anew(&self, db: &str) -> Result<()> {
        let _turn = self.refreshes.of(db).exclusive(&self.env.clock).await;
        let catalog = &self.cluster()?.catalog;
        catalog.forget_database(db);
        let entry = catalog.database_entry(db, None).await?;
        self.cached()?.write_database(db, entry.as_deref()).await?;
        self.install_database(db, entry)
    }
    /// What is known of a collection may be wrong: nobody is judged by it before the config servers have been asked.
    pub(crate) fn forget(&self, ns: &Namespace) {
        // The catalog first: who asks it after the other has forgotten is told nothing of before.
        if let Ok(cluster) = self.cluster() {
            cluster.catalog.renew_collection(ns.as_str());
        }
        self.metadata.forget(ns);
    }
    pub(crate) fn forget_database(&self, db: &str) {
        if let Ok(cluster) = self.cluster() {
            cluster.catalog.forget_database(db);
        }
        self.metadata.forget_database(db);
    }
    /// The same of everything: a new primary, which was told of nothing that its predecessor has done.
    pub(crate) fn forget_all(&self) {
        if let Ok(cached) = self.cached() {
            cached.forget_all();
        }
        if let Ok(cluster) = self.cluster() {
            cluster.catalog.forget_all();
        }
        self.metadata.forget_all();
    }
}
