//! What exists: for commands that list and count, and for questions before a change of a definition.

use pando_base::{Namespace, Uuid};
use pando_catalog::{CatalogSnapshot, Collection, Named, View};
use std::sync::Arc;

/// All collections and views at one moment, as definitions: names, options, indexes, counters. No document can be read with them.
#[derive(Clone, Debug)]
pub struct Definitions(Arc<CatalogSnapshot>);

impl Definitions {
    pub(crate) fn new(snapshot: Arc<CatalogSnapshot>) -> Definitions {
        Definitions(snapshot)
    }
    pub fn named(&self, ns: &Namespace) -> Option<&Named> {
        self.0.get(ns)
    }
    pub fn collection(&self, ns: &Namespace) -> Option<&Arc<Collection>> {
        self.0.collection(ns)
    }
    /// What the collection of this UUID is called now.
    pub fn name_of(&self, uuid: Uuid) -> Option<Namespace> {
        self.0.by_uuid(uuid).map(|coll| coll.ns.clone())
    }
    pub fn is_view(&self, ns: &Namespace) -> bool {
        self.0.view(ns).is_some()
    }
    /// Collections and views of a database, by name.
    pub fn list(&self, db: &str) -> Vec<Named> {
        self.0.list(db)
    }
    pub fn collections(&self, db: &str) -> Vec<Arc<Collection>> {
        self.0.collections(db)
    }
    pub fn views(&self, db: &str) -> Vec<Arc<View>> {
        self.0.views(db)
    }
    /// Every collection, in no particular but repeatable order.
    pub fn all_collections(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.0.all_collections()
    }
    /// Names of databases that hold something, ascending.
    pub fn databases(&self) -> Vec<String> {
        self.0.databases()
    }
}
