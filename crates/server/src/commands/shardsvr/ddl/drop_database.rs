//! What a shard has to do with the drop of a database (SH-DDL-9).

use super::Ddl;
use pando_audit::Event;
use pando_base::{Error, Namespace, Result, Uuid};
use pando_bson::{DocBuilder, Value};
use pando_metadata_cache::Ask;

impl Ddl<'_> {
    /// As the config servers know them.
    pub(super) async fn sharded_collections(&self, db: &str) -> Result<Vec<(Namespace, Uuid)>> {
        let (first, last) = (format!("{db}."), format!("{db}/"));
        let mut filter = DocBuilder::new();
        filter.doc("_id", |d| {
            d.str("$gt", &first).str("$lt", &last);
        });
        let found = self.cluster.catalog.read(&Ask::of("collections", filter.finish())).await?;
        let mut all = Vec::new();
        for doc in &found {
            let name = doc.get("_id").and_then(|v| v.as_str().map(Namespace::parse));
            let uuid = match doc.get("uuid") {
                Some(Value::Binary { subtype: 4, bytes }) => Uuid::from_slice(bytes),
                _ => None,
            };
            let entry = name.zip(uuid);
            let (ns, uuid) =
                entry.ok_or_else(|| Error::internal(format!("an entry without a UUID: {doc}")))?;
            all.push((ns?, uuid));
        }
        Ok(all)
    }
    fn has_database(&self, db: &str) -> bool {
        self.server.access.definitions().databases().into_iter().any(|name| name == db)
    }
    /// On the primary shard. Of a database that had sharded collections alone nothing is here by now; its entry tells change streams that
    /// it has gone all the same. A primary that does this step again writes another one.
    pub(super) async fn drop_database_here(&self, db: &str) -> Result<()> {
        let is_here = self.has_database(db);
        self.drop_database_as_told(db).await?;
        if !is_here {
            self.server.upkeep.maintenance.begin_drop_database(db).await?.finish().await?;
        }
        Ok(())
    }
    /// Drops what is here of the database.
    pub(super) async fn drop_database_as_told(&self, db: &str) -> Result<()> {
        // What had sharded collections alone is gone already; that it was dropped is told all the same.
        if !self.has_database(db) {
            self.ctx.client.audit(|| Event::drop_database(db));
        }
        let mut b = DocBuilder::new();
        b.i32("dropDatabase", 1);
        let body = b.finish();
        let request = Ddl::request("dropDatabase", db, &body);
        crate::commands::drop_database(self.server, self.ctx, request).await?;
        self.sharding.metadata.forget_database(db);
        Ok(())
    }
}
