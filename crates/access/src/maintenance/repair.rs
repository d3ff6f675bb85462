//! `--repair`: comparing collections, and making again what can be made again.

use super::Maintenance;
use pando_base::{Namespace, Result};
use pando_bson::{DocBuf, RawDoc};
use pando_catalog::{DropWhich, Extent, Uninterrupted};

impl Maintenance {
    /// Collections with rows of their own, by database and name.
    pub fn stored_collections(&self) -> Vec<Namespace> {
        let snapshot = self.catalog.snapshot();
        let all = snapshot.databases().into_iter().flat_map(|db| snapshot.collections(&db));
        all.filter(|c| c.is_stored()).map(|c| c.ns.clone()).collect()
    }
    /// What is wrong with a collection, its counters included.
    pub async fn errors_of(&self, ns: &Namespace) -> Result<Vec<String>> {
        Ok(self.catalog.validate(ns, Extent::Counted, &Uninterrupted).await?.errors)
    }
    /// The `_id` index stays: without it the collection cannot be written.
    pub async fn build_indexes_again(&self, ns: &Namespace) -> Result<()> {
        let Some(coll) = self.catalog.lookup(ns) else { return Ok(()) };
        let others = coll.ready_indexes().iter().filter(|i| !i.spec.is_id_index());
        let docs: Vec<DocBuf> = others.map(|i| i.spec.doc.clone()).collect();
        if docs.is_empty() {
            return Ok(());
        }
        let specs: Vec<&RawDoc> = docs.iter().map(|d| &**d).collect();
        self.catalog.drop_indexes(ns, DropWhich::All).await?;
        self.catalog.create_indexes(ns, &specs, &Uninterrupted).await.map(drop)
    }
}
