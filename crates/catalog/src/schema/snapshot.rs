//! The catalog as readers see it: an immutable map from names and UUIDs to collections and views.
//!
//! The map is split into shards by name; a change copies one shard, so creating ten thousand collections costs
//! ten thousand small copies, not ten thousand large ones.

use crate::schema::collection::{Collection, View};
use pando_base::{Namespace, Uuid};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

const SHARDS: usize = 64;

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Named {
    Collection(Arc<Collection>),
    View(Arc<View>),
}

impl Named {
    pub fn ns(&self) -> &Namespace {
        match self {
            Named::Collection(c) => &c.ns,
            Named::View(v) => &v.ns,
        }
    }
}

/// All collections and views at one moment.
#[derive(Clone, Debug)]
pub struct CatalogSnapshot {
    by_name: [Arc<BTreeMap<String, Named>>; SHARDS],
    by_uuid: [Arc<BTreeMap<Uuid, Arc<Collection>>>; SHARDS],
    /// Grows with every change.
    pub version: u64,
}

impl Default for CatalogSnapshot {
    fn default() -> CatalogSnapshot {
        CatalogSnapshot {
            by_name: std::array::from_fn(|_| Arc::default()),
            by_uuid: std::array::from_fn(|_| Arc::default()),
            version: 0,
        }
    }
}

fn name_shard(ns: &str) -> usize {
    let mut h = pando_base::hash::Fnv::default();
    ns.hash(&mut h);
    h.finish() as usize % SHARDS
}

fn uuid_shard(uuid: Uuid) -> usize {
    usize::from(uuid.0[0]) % SHARDS
}

impl CatalogSnapshot {
    pub fn get(&self, ns: &Namespace) -> Option<&Named> {
        self.by_name[name_shard(ns.as_str())].get(ns.as_str())
    }
    pub fn collection(&self, ns: &Namespace) -> Option<&Arc<Collection>> {
        match self.get(ns)? {
            Named::Collection(c) => Some(c),
            Named::View(_) => None,
        }
    }
    pub fn view(&self, ns: &Namespace) -> Option<&Arc<View>> {
        match self.get(ns)? {
            Named::View(v) => Some(v),
            Named::Collection(_) => None,
        }
    }
    pub fn by_uuid(&self, uuid: Uuid) -> Option<&Arc<Collection>> {
        self.by_uuid[uuid_shard(uuid)].get(&uuid)
    }
    fn in_db<'a>(&'a self, db: &str) -> impl Iterator<Item = &'a Named> {
        let prefix = format!("{db}.");
        self.by_name.iter().flat_map(move |shard| {
            let prefix = prefix.clone();
            let end = prefix.clone();
            shard.range(prefix..).take_while(move |(name, _)| name.starts_with(&end)).map(|(_, named)| named)
        })
    }
    /// Collections and views of a database, by name.
    pub fn list(&self, db: &str) -> Vec<Named> {
        let mut all: Vec<Named> = self.in_db(db).cloned().collect();
        all.sort_by(|a, b| a.ns().as_str().cmp(b.ns().as_str()));
        all
    }
    pub fn collections(&self, db: &str) -> Vec<Arc<Collection>> {
        let only = |n| match n {
            Named::Collection(c) => Some(c),
            Named::View(_) => None,
        };
        self.list(db).into_iter().filter_map(only).collect()
    }
    pub fn views(&self, db: &str) -> Vec<Arc<View>> {
        let only = |n| match n {
            Named::View(v) => Some(v),
            Named::Collection(_) => None,
        };
        self.list(db).into_iter().filter_map(only).collect()
    }
    /// Every collection, in no particular but repeatable order.
    pub fn all_collections(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.by_uuid.iter().flat_map(|shard| shard.values())
    }
    pub fn has_database(&self, db: &str) -> bool {
        self.in_db(db).next().is_some()
    }
    /// Names of databases that hold something, ascending.
    pub fn databases(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        for shard in &self.by_name {
            for named in shard.values() {
                if !names.contains(named.ns().db()) {
                    names.insert(named.ns().db().to_owned());
                }
            }
        }
        names.into_iter().collect()
    }
    /// The existing database whose name differs from `db` only in case.
    pub fn database_differing_in_case(&self, db: &str) -> Option<String> {
        if self.has_database(db) {
            return None;
        }
        self.databases().into_iter().find(|other| other.eq_ignore_ascii_case(db) && other != db)
    }

    /// Adds or replaces. A name that another collection holds stays with that one: this only happens while
    /// replaying, when rows are ahead of the log and the newcomer is gone again further on.
    pub(crate) fn put(&mut self, named: Named) {
        let ns = named.ns().as_str().to_owned();
        if let Named::Collection(c) = &named {
            Arc::make_mut(&mut self.by_uuid[uuid_shard(c.uuid)]).insert(c.uuid, c.clone());
        }
        let shard = Arc::make_mut(&mut self.by_name[name_shard(&ns)]);
        match (shard.get(&ns), &named) {
            (Some(Named::Collection(there)), Named::Collection(c)) if there.uuid != c.uuid => {}
            _ => {
                shard.insert(ns, named);
            }
        }
    }
    pub(crate) fn remove(&mut self, gone: &Collection) {
        let shard = Arc::make_mut(&mut self.by_name[name_shard(gone.ns.as_str())]);
        if matches!(shard.get(gone.ns.as_str()), Some(Named::Collection(c)) if c.uuid == gone.uuid) {
            shard.remove(gone.ns.as_str());
        }
        Arc::make_mut(&mut self.by_uuid[uuid_shard(gone.uuid)]).remove(&gone.uuid);
    }
    pub(crate) fn remove_view(&mut self, ns: &Namespace) {
        let shard = Arc::make_mut(&mut self.by_name[name_shard(ns.as_str())]);
        if matches!(shard.get(ns.as_str()), Some(Named::View(_))) {
            shard.remove(ns.as_str());
        }
    }
}
