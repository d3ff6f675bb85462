//! What is kept of collections and databases, as the cache of routing tables asks it.

use pando_routing::cache::Cached;
use pando_routing::{ChunkVersion, DatabaseEntry, DatabaseVersion, RoutingTable};
use std::cmp::Ordering;
use std::sync::Arc;

/// A database, if there is one of that name.
#[derive(Clone, Debug)]
pub struct KnownDatabase(pub Option<Arc<DatabaseEntry>>);

impl Cached for KnownDatabase {
    type Version = DatabaseVersion;
    fn is_older_than(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => one.version.order(other.version) == Ordering::Less,
            _ => false,
        }
    }
    fn covers(&self, wanted: &DatabaseVersion) -> bool {
        self.0.as_ref().is_some_and(|known| known.version.order(*wanted) != Ordering::Less)
    }
}

/// Where a collection's documents are; nothing for one that is not sharded or not there.
#[derive(Clone, Debug)]
pub struct KnownCollection(pub Option<Arc<RoutingTable>>);

impl KnownCollection {
    fn version(&self) -> ChunkVersion {
        self.0.as_ref().map_or(ChunkVersion::UNSHARDED, |table| table.version())
    }
}

impl Cached for KnownCollection {
    type Version = ChunkVersion;
    /// A collection without chunks is neither older nor newer than one with some.
    fn is_older_than(&self, other: &Self) -> bool {
        self.version().order(other.version()) == Some(Ordering::Less)
    }
    fn covers(&self, wanted: &ChunkVersion) -> bool {
        self.version().is_as_new_as(*wanted)
    }
}
