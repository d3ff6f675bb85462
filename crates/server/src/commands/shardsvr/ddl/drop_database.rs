//! `dropDatabase` on the primary shard (SH-DDL-9): each sharded collection, then the database on every shard, then its entry.

use super::{Ddl, append_majority};
use pando_base::{Namespace, Result};
use pando_bson::DocBuilder;
use pando_metadata_cache::Ask;
use pando_shard::metadata::KnownDatabase;

impl Ddl<'_> {
    pub(crate) async fn drop_database(&self, db: &str) -> Result<()> {
        let _lock = self.sharding.ddl_locks.database(self.ctx.env(), db).await;
        self.sharding.refresh_database_anew(db).await?;
        for ns in self.sharded_collections(db).await? {
            self.drop_locked(&ns).await?;
        }
        let mut b = DocBuilder::new();
        b.i32("_shardsvrDropDatabaseParticipant", 1);
        append_majority(&mut b);
        b.str("$db", db);
        let body = b.finish();
        for shard in self.others().await? {
            self.on_shard(&shard, &body).await?;
        }
        self.drop_database_as_told(db).await?;
        if let Some(KnownDatabase::Here(version)) = self.sharding.metadata.known_database(db) {
            let mut b = DocBuilder::new();
            b.str("_configsvrCommitDropDatabase", db);
            version.append("version", &mut b);
            append_majority(&mut b);
            b.str("$db", "admin");
            self.on_config(&b.finish()).await?;
        }
        self.sharding.metadata.forget_database(db);
        Ok(())
    }
    pub(crate) async fn sharded_collections(&self, db: &str) -> Result<Vec<Namespace>> {
        let (first, last) = (format!("{db}."), format!("{db}/"));
        let mut filter = DocBuilder::new();
        filter.doc("_id", |d| {
            d.str("$gt", &first).str("$lt", &last);
        });
        let found = self.cluster.catalog.read(&Ask::of("collections", filter.finish())).await?;
        found.iter().filter_map(|d| d.get("_id")?.as_str().map(Namespace::parse)).collect()
    }
    /// Drops what is here of the database.
    pub(crate) async fn drop_database_as_told(&self, db: &str) -> Result<()> {
        let mut b = DocBuilder::new();
        b.i32("dropDatabase", 1);
        let body = b.finish();
        let request = Ddl::request("dropDatabase", db, &body);
        crate::commands::drop_database(self.server, self.ctx, request).await?;
        self.sharding.metadata.forget_database(db);
        Ok(())
    }
}
