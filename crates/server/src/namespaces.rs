//! Finding what a command's first element names, and sizes of what is there.

use crate::Server;
use pando_base::{Error, ErrorCode, Namespace, Result, Uuid};
use pando_bson::Value;
use pando_catalog::{CatalogSnapshot, Collection, Named};
use pando_command::Request;
use std::sync::Arc;

/// Counts of `serverStatus.catalogStats`.
#[derive(Default)]
pub(crate) struct CatalogCounts {
    pub(crate) collections: i32,
    pub(crate) capped: i32,
    pub(crate) clustered: i32,
    pub(crate) views: i32,
    pub(crate) internal: i32,
}

impl Server {
    /// `db.coll` of the first element, which may be the collection's UUID instead of its name.
    pub(crate) fn ns_or_uuid(&self, req: &Request<'_>) -> Result<Namespace> {
        let Value::Binary { subtype: 4, bytes } = req.first().value() else { return req.ns() };
        let uuid = Uuid::from_slice(bytes)
            .ok_or_else(|| Error::new(ErrorCode::InvalidUUID, "uuid must be a 16-byte binary field"))?;
        match self.catalog.lookup_uuid(uuid) {
            Some(c) if c.ns.db() == req.db => Ok(c.ns.clone()),
            _ => Err(Error::new(ErrorCode::NamespaceNotFound, format!("Unable to resolve {uuid}"))),
        }
    }
    /// The collection of that name, if any; 166 when it is a view.
    pub(crate) fn existing_collection(&self, ns: &Namespace) -> Result<Option<Arc<Collection>>> {
        match self.catalog.snapshot().get(ns) {
            Some(Named::Collection(c)) => Ok(Some(c.clone())),
            Some(Named::View(_)) => Err(Error::new(
                ErrorCode::CommandNotSupportedOnView,
                format!("Namespace {ns} is a view, not a collection"),
            )),
            None => Ok(None),
        }
    }
    /// Bytes that a database takes: documents and an estimate of its index entries.
    pub(crate) fn database_bytes(&self, snapshot: &CatalogSnapshot, db: &str) -> u64 {
        snapshot.collections(db).iter().map(|c| storage_bytes(c) + index_bytes(c).iter().sum::<u64>()).sum()
    }
    pub(crate) fn count_catalog(&self) -> CatalogCounts {
        let snapshot = self.catalog.snapshot();
        let mut n = CatalogCounts::default();
        for db in snapshot.databases() {
            let internal_db = matches!(db.as_str(), "admin" | "config" | "local");
            n.views += snapshot.views(&db).len() as i32;
            for c in snapshot.collections(&db) {
                if internal_db || c.ns.coll().starts_with("system.") {
                    n.internal += 1;
                    continue;
                }
                n.collections += 1;
                n.capped += i32::from(c.is_capped());
                n.clustered += i32::from(c.is_clustered());
            }
        }
        n
    }
    pub(crate) fn active_index_builds(&self) -> usize {
        self.catalog.snapshot().all_collections().map(|c| c.building_indexes().len()).sum()
    }
}

/// Smallest unit of space that statistics show.
const PAGE: u64 = 4096;
/// Key, record id and row header of a typical index entry.
const INDEX_ENTRY_BYTES: u64 = 40;

/// Bytes of documents in whole pages. (Compression and not yet compacted versions make the real figure differ.)
pub(crate) fn storage_bytes(c: &Collection) -> u64 {
    c.data_bytes().next_multiple_of(PAGE).max(PAGE)
}
/// An estimate per ready index, from the number of documents.
pub(crate) fn index_bytes(c: &Collection) -> Vec<u64> {
    let each = (c.count() * INDEX_ENTRY_BYTES).next_multiple_of(PAGE).max(PAGE);
    c.ready_indexes().iter().map(|_| each).collect()
}
