//! `--repair`: all data is read and compared, and what can be made again from it is: counts and indexes of a single
//! server. Lost rows cannot be made again: whatever cannot be read is named.

use crate::Server;
use pando_base::{Error, Namespace, Result};
use pando_bson::{DocBuf, RawDoc};
use pando_catalog::{DropWhich, Extent, Uninterrupted};
use pando_env::Component;
use std::ops::Bound;

impl Server {
    /// Returns what is wrong and could not be mended.
    pub async fn check_all(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Err(e) = self.read_log() {
            problems.push(format!("the oplog: {}", e.message));
        }
        let snapshot = self.catalog.snapshot();
        for coll in snapshot.databases().iter().flat_map(|db| snapshot.collections(db)) {
            if !coll.is_stored() {
                continue;
            }
            if let Err(e) = self.check_collection(&coll.ns).await {
                self.env.log.error(Component::Storage, 9100030, "A collection cannot be repaired", |a| {
                    a.str("namespace", coll.ns.as_str()).str("error", &e.message);
                });
                problems.push(format!("{}: {}", coll.ns, e.message));
            }
        }
        problems
    }

    fn read_log(&self) -> Result<()> {
        let mut log = self.storage.log().read(Bound::Unbounded, false);
        while log.next()?.is_some() {}
        Ok(())
    }

    async fn check_collection(&self, ns: &Namespace) -> Result<()> {
        let first = self.errors_of(ns).await?;
        if first.is_empty() {
            return Ok(());
        }
        self.env.log.warn(Component::Storage, 9100031, "Repairing a collection", |a| {
            a.str("namespace", ns.as_str()).str("errors", &first.join("; "));
        });
        self.catalog.recount_all_of(ns)?;
        // What a set's member did alone, its set would not have.
        if !self.replication.member.is_replicated()
            && !self.replication.is_member_alone()
            && !self.catalog.gate().is_read_only()
        {
            self.build_indexes_again(ns).await?;
        }
        let left = self.errors_of(ns).await?;
        if left.is_empty() { Ok(()) } else { Err(Error::internal(left.join("; "))) }
    }

    async fn errors_of(&self, ns: &Namespace) -> Result<Vec<String>> {
        Ok(self.catalog.validate(ns, Extent::Counted, &Uninterrupted).await?.errors)
    }

    /// The `_id` index stays: without it the collection cannot be written.
    async fn build_indexes_again(&self, ns: &Namespace) -> Result<()> {
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
