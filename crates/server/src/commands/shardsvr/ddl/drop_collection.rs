//! `drop` on the primary shard of the database (SH-DDL-8): first nobody routes to the collection any more, then its parts go.

use super::section::CriticalSection;
use super::{Ddl, append_majority};
use pando_base::{Namespace, Result};
use pando_bson::DocBuilder;
use pando_routing::CollectionEntry;

impl Ddl<'_> {
    pub(crate) async fn drop_collection(&self, ns: &Namespace) -> Result<()> {
        let _locks = self.sharding.ddl_locks.collection(self.ctx.env(), ns.db(), ns.as_str()).await;
        self.drop_locked(ns).await
    }
    /// The same where somebody holds the locks.
    pub(super) async fn drop_locked(&self, ns: &Namespace) -> Result<()> {
        self.sharding.refresh_anew(ns).await?;
        let table = self.sharding.metadata.known(ns).table().cloned();
        let section = CriticalSection::enter(self, ns).await;
        if let Some(table) = &table {
            self.commit_drop(&table.collection).await?;
        }
        self.drop_parts(ns, table.is_some()).await?;
        self.sharding.refresh_anew(ns).await?;
        section.settled();
        Ok(())
    }
    async fn commit_drop(&self, entry: &CollectionEntry) -> Result<()> {
        let mut b = DocBuilder::new();
        b.str("_configsvrCommitDropCollection", &entry.ns).uuid("collectionUUID", &entry.uuid.0);
        append_majority(&mut b);
        b.str("$db", "admin");
        self.on_config(&b.finish()).await.map(drop)
    }
    /// Also where it was not sharded: shards may have leftovers of a sharding that was cut off.
    async fn drop_parts(&self, ns: &Namespace, was_sharded: bool) -> Result<()> {
        let mut b = DocBuilder::new();
        b.str("_shardsvrDropCollectionParticipant", ns.coll());
        append_majority(&mut b);
        b.str("$db", ns.db());
        let body = b.finish();
        for shard in self.others().await? {
            let done = self.on_shard(&shard, &body).await;
            if was_sharded {
                done?;
            }
        }
        self.drop_as_told(ns).await
    }
}
